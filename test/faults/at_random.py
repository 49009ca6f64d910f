"""Kills and stop signals at moments that nobody chose."""
import random
import shutil
import signal
import time

from runs import Broken, tree

STOPS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1")


def killed(world, job, number):
    """SIGKILL to one rank, anywhere between start and end; the others end by themselves."""
    def ends(processes, ended, rank, saved):
        if ended.statuses[rank] == -signal.SIGKILL:
            return "killed"
        if any(ended.statuses):
            raise Broken(f"ended with {ended.statuses}: {ended.errors}")
        return "had ended"
    return struck(world, job, number, signal.SIGKILL, ends)


def stopped(world, job, number, name):
    """A signal that asks for a stop, to one rank: all of them save the same step and end with 128 + the signal."""
    asked = getattr(signal, name)

    def ends(processes, ended, rank, saved):
        if all(status == 128 + asked for status in ended.statuses):
            if not saved:
                raise Broken("stopped without the checkpoint that was asked for")
            return "stopped"
        if ended.statuses[rank] == -asked and not saved:
            return "not ready"  # before the program asked for signals: the system's own way
        if any(ended.statuses):
            raise Broken(f"ended with {ended.statuses}: {ended.errors}")
        return "had ended"
    return struck(world, job, number, asked, ends)


def struck(world, job, number, sent, ends):
    moment = random.Random(f"{job} {sent} {number}")
    folder = world.fresh(job, f"cases/{job.name}-{job.world}-{int(sent)}-{number}")
    processes = world.start(job, folder)
    rank = moment.randrange(job.world)
    time.sleep(moment.uniform(0, 1) * job.seconds)
    processes[rank].send_signal(sent)
    ended = world.finish(folder, processes)
    files = tree(folder)
    world.check_kept(job, files)
    how = ends(processes, ended, rank, any(name.endswith("index.json") for name in files))
    world.check_resumes(job, folder)
    shutil.rmtree(folder)
    return how, ""
