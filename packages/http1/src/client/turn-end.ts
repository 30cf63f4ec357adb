/** Request that waits to be sent. */
export interface QueuedRequest {
  send(): void
}

/** Connection that has carried a request, and is read for a turn before it is reused. */
export interface UsedConnection {
  turnPassed(): void
}

const queued: QueuedRequest[] = []
let used: UsedConnection[] = []
let beingRead: UsedConnection[] = []
let isScheduled = false

/**
 * Sends a request at the end of this turn of the event loop, together with the turn's other requests: writes
 * in direct succession cost half, because the reader wakes up once.
 */
export function sendAtTurnEnd(request: QueuedRequest): void {
  queued.push(request)
  schedule()
}

/**
 * Calls `turnPassed` at the end of the next turn of the event loop, before any request is sent: all sockets
 * were read in between, so that unsolicited bytes have been seen.
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
