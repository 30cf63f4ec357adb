/** What can be sent off. */
export interface Departing {
  depart(): void
}

const waiting: Departing[] = []

/**
 * Sends it off at the end of this turn of the event loop, with whatever else the turn brings. One after the other without anything in
 * between, writes cost half: whoever reads them is woken once.
 */
export function departSoon(departing: Departing): void {
  waiting.push(departing)
  if (waiting.length === 1) setImmediate(departAll)
}

function departAll(): void {
  for (const departing of waiting.splice(0)) departing.depart()
}
