/** A call that waits to be sent. */
export interface QueuedRequest {
  send(): void
}

/** A connection that has carried a call and waits to be looked at. */
export interface UsedConnection {
  turnPassed(): void
}

const queued: QueuedRequest[] = []
let used: UsedConnection[] = []
let beingRead: UsedConnection[] = []
let isScheduled = false

/**
 * Sends it off at the end of this turn of the event loop, with whatever else the turn brings. One after the
 * other without anything in between, writes cost half: whoever reads them is woken once.
 */
export function sendAtTurnEnd(request: QueuedRequest): void {
  queued.push(request)
  schedule()
}

/**
 * Tells it at the end of the next turn of the event loop, before any call departs: all sockets were read in
 * between, and whatever had arrived on its own has been received.
 */
export function notifyAfterTurn(connection: UsedConnection): void {
  used.push(connection)
  schedule()
}

function schedule(): void {
  if (isScheduled) return
  isScheduled = true
  setImmediate(endTurn)
}

function endTurn(): void {
  isScheduled = false
  const readOnce = beingRead
  beingRead = used
  used = []
  if (beingRead.length > 0) schedule()
  for (const one of readOnce) one.turnPassed()
  for (const one of queued.splice(0)) one.send()
}
