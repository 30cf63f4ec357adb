/** A call that waits to be sent. */
export interface Departing {
  depart(): void
}

/** A connection that has carried a call and waits to be looked at. */
export interface Resting {
  rested(): void
}

const departing: Departing[] = []
let resting: Resting[] = []
let beingRead: Resting[] = []
let isDue = false

/**
 * Sends it off at the end of this turn of the event loop, with whatever else the turn brings. One after the
 * other without anything in between, writes cost half: whoever reads them is woken once.
 */
export function departSoon(one: Departing): void {
  departing.push(one)
  atTurnEnd()
}

/**
 * Tells it at the end of the next turn of the event loop, before any call departs: all sockets were read in
 * between, and whatever had arrived on its own has been received.
 */
export function restForATurn(one: Resting): void {
  resting.push(one)
  atTurnEnd()
}

function atTurnEnd(): void {
  if (isDue) return
  isDue = true
  setImmediate(turnEnds)
}

function turnEnds(): void {
  isDue = false
  const rested = beingRead
  beingRead = resting
  resting = []
  if (beingRead.length > 0) atTurnEnd()
  for (const one of rested) one.rested()
  for (const one of departing.splice(0)) one.depart()
}
