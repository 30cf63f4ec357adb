import process from 'node:process'
import { arrive } from './arrive.ts'
import type { Order, Measurements } from './orders.ts'
import { saturate } from './saturate.ts'
import { Streams } from './streams.ts'

/** A separate program: generates the load over raw connections, and reports the results. */
const streams = new Streams()
const heldStreams = new Streams()

function carryOut(order: Order): Promise<Measurements> {
  switch (order.kind) {
    case 'saturate':
      return saturate(order)
    case 'open':
      return streams.open(order)
    case 'hold':
      return heldStreams.open({ ...order, kind: 'open', streams: 1 })
    case 'forget':
      streams.forget()
      return Promise.resolve(streams.tell())
    case 'tell':
      return Promise.resolve(streams.tell())
    case 'ended':
      return streams.ended()
    case 'arrive':
      return arrive(order)
  }
}

process.on('message', (order: Order) => {
  void carryOut(order).then((seen) => process.send?.(seen))
})
process.on('disconnect', () => process.exit())
process.send?.('ready')
