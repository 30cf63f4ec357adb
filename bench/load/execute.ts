import { nextMessage, type Started } from '../measuring/started.ts'
import type { Measurements, Order } from './orders.ts'

/** Sends the generator an order, and waits until it is done. Rejects if a call failed. */
export async function execute(generator: Started, order: Order): Promise<Measurements> {
  const answer = nextMessage<Measurements>(generator)
  generator.child.send(order)
  const seen = await answer
  if (seen.failed > 0) throw new Error(`${seen.failed} calls failed; the first: ${seen.firstFailure}`)
  return seen
}
