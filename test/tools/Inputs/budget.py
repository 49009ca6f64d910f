"""What three schedules of one model need and send, from zero-inspect --json. usage: budget.py USUAL PLENTY TIGHT BYTES"""
import json
import sys

usual, plenty, tight = (json.load(open(path)) for path in sys.argv[1:4])
need = lambda plan: plan["memory"]["total_bytes"]
sent = lambda plan: plan["communication"]["bytes_sent"] / usual["communication"]["bytes_sent"]
print(f"the usual schedule needs {'more' if need(usual) > int(sys.argv[4]) else 'no more'} than the tight budget")
print(f"plenty sends {sent(plenty):.2f} of the usual bytes")
print(f"tight {'fits' if need(tight) <= int(sys.argv[4]) else 'does not fit'} and sends {sent(tight):.2f} of the usual bytes")
