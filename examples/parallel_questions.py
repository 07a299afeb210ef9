"""Two branches ask at the same time, and are answered one after the other.

An answered branch goes on; the one that still waits is left alone, and a finished one never runs again.

    $ python examples/parallel_questions.py
    finance reads the contract
    legal reads the contract
    open: finance: Within the budget?
    open: legal: Any risky clause?
    -- only legal answers
    legal reads the contract
    open: finance: Within the budget?
    -- finance answers
    finance reads the contract
    done: {'legal': 'none', 'finance': 'yes'}
"""

from typing import TypedDict

from bide import START, Command, MemorySaver, StateGraph, interrupt


class Contract(TypedDict, total=False):
    legal: str
    finance: str


def legal(contract: Contract) -> Contract:
    print("legal reads the contract", flush=True)
    return {"legal": interrupt("Any risky clause?")}


def finance(contract: Contract) -> Contract:
    print("finance reads the contract", flush=True)
    return {"finance": interrupt("Within the budget?")}


builder = StateGraph(Contract)
builder.add_node(legal)
builder.add_node(finance)
builder.add_edge(START, "legal")
builder.add_edge(START, "finance")


def show_open(result):
    for question in result.interrupts:
        print(f"open: {question.node}: {question.value}")


if __name__ == "__main__":
    graph = builder.compile(checkpointer=MemorySaver())
    # One at a time, so that this prints the same at every run; without it both branches run side by side.
    config = {"configurable": {"thread_id": "contract-7"}, "max_concurrency": 1}

    result = graph.invoke({}, config)
    show_open(result)

    ids = {question.node: question.id for question in result.interrupts}
    print("-- only legal answers")
    result = graph.invoke(Command(resume={ids["legal"]: "none"}), config)
    show_open(result)

    print("-- finance answers")
    result = graph.invoke(Command(resume="yes"), config)  # one question is left, so it needs no id
    print(f"done: {result.value}")
