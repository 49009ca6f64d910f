//===- logits.cpp - the way from a product to its cross-entropy ---------------------------------------===//
#include "passes/train/logits.h"

using namespace mlir;

namespace zero::train {
namespace {

/// The tensor of one number per class that `v` repeats for every row, or null.
Value perClass(Value v, int64_t classes) {
  auto repeated = v.getDefiningOp<nn::BroadcastOp>();
  if (!repeated || repeated.getDims() != ArrayRef<int64_t>{nn::typeOf(v).getRank() - 1}) return {};
  Value numbers = repeated.getInput();
  return nn::typeOf(numbers).getDimSize(0) == classes ? numbers : Value();
}

/// Whether `op` does the same to every logit, or what the numbers of a class say.
bool isOfEachLogit(Operation *op, Value logits, int64_t classes) {
  if (auto divide = dyn_cast<nn::DivOp>(op)) return divide.getLhs() == logits && nn::splatOf(divide.getRhs()).value_or(0) != 0;
  if (!isa<nn::AddOp, nn::SubOp, nn::MulOp, nn::NegOp, nn::TanhOp, nn::CastOp>(op)) return false;
  return nn::isFloat(op->getResult(0)) && llvm::all_of(op->getOperands(), [&](Value operand) {
           return operand == logits || nn::splatOf(operand) || perClass(operand, classes);
         });
}

bool keepsClasses(Operation *op, int64_t classes) {
  auto view = dyn_cast<nn::ReshapeOp>(op);
  return view && nn::typeOf(view).getRank() > 0 && nn::typeOf(view).getShape().back() == classes;
}

} // namespace

std::optional<Logits> logitsOf(nn::MatMulOp product) {
  Logits found;
  found.path.push_back(product);
  int64_t classes = nn::typeOf(product.getResult()).getDimSize(1);
  for (Value v = product.getResult();;) {
    for (Operation *user : v.getUsers())
      if (auto loss = dyn_cast<nn::CrossEntropyOp>(user); loss && loss.getLogits() == v) found.loss = loss;
    if (found.loss) {
      found.path.push_back(found.loss);
      if (!v.hasOneUse() || !found.loss.getLse().use_empty()) found.whole = "not one cross-entropy alone reads them";
      return found;
    }
    if (!v.hasOneUse()) return std::nullopt;
    Operation *user = *v.user_begin();
    if (!keepsClasses(user, classes) && !isOfEachLogit(user, v, classes)) return std::nullopt;
    found.path.push_back(user);
    v = user->getResult(0);
  }
}

Value Logits::from(OpBuilder &builder, Value scores, function_ref<Value(nn::Build, Value)> classesOf) const {
  int64_t classes = nn::typeOf(path.front()->getResult(0)).getDimSize(1);
  Value before = path.front()->getResult(0);
  for (Operation *op : ArrayRef(path).drop_front().drop_back()) {
    Value result = op->getResult(0);
    if (!isa<nn::ReshapeOp>(op)) {
      nn::Build b{builder, op->getLoc()};
      SmallVector<Value> operands;
      for (Value operand : op->getOperands()) {
        auto type = nn::withElement(scores, nn::elementOf(operand));
        if (operand == before)
          operands.push_back(scores);
        else if (auto number = nn::splatOf(operand))
          operands.push_back(b.splat(type, *number));
        else
          operands.push_back(b.columns(classesOf(b, perClass(operand, classes)), type.getShape()));
      }
      Operation *again = builder.clone(*op);
      again->setOperands(operands);
      again->getResult(0).setType(nn::withElement(scores, nn::elementOf(result)));
      scores = again->getResult(0);
    }
    before = result;
  }
  return scores;
}

} // namespace zero::train
