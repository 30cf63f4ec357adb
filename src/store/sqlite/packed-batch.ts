import type { HoldOpening, SettledCall } from '../ledger-writes.ts'
import type { QueuedOperation } from './messages.ts'

/**
 * A batch of operations as it crosses to a thread: one after the other, without the names of fields. What
 * crosses is copied value by value, and every call makes a hold and a settlement: with their names they take
 * more than twice as long.
 */
export type PackedBatch = readonly unknown[]

/** Lays operations out for the way. */
export function pack(operations: Iterable<QueuedOperation>): PackedBatch {
  const values: unknown[] = []
  for (const [name, input] of operations) {
    if (name === 'hold') packHold(values, input as HoldOpening)
    else if (name === 'settle') packCall(values, input as SettledCall)
    else values.push(name, input)
  }
  return values
}

/** What `packed` was given. */
export function unpack(values: PackedBatch): QueuedOperation[] {
  const operations: QueuedOperation[] = []
  for (let at = 0; at < values.length; ) {
    const name = values[at] as string
    if (name === 'hold') {
      operations.push([name, heldAt(values, at + 1)])
      at += 13
    } else if (name === 'settle') {
      operations.push([name, callAt(values, at + 1)])
      at += 23
    } else {
      operations.push([name, values[at + 1]])
      at += 2
    }
  }
  return operations
}

function packHold(values: unknown[], hold: HoldOpening): void {
  values.push(
    'hold',
    hold.id,
    hold.owner,
    hold.tokenId,
    hold.userId,
    hold.amount,
    hold.promptAmount,
    hold.startedMs,
    hold.model,
    hold.channel,
    hold.group,
    hold.stream,
    hold.priceVersion,
  )
}

function heldAt(values: PackedBatch, at: number): HoldOpening {
  return {
    id: values[at] as string,
    owner: values[at + 1] as string,
    tokenId: values[at + 2] as number,
    userId: values[at + 3] as number,
    amount: values[at + 4] as number,
    promptAmount: values[at + 5] as number,
    startedMs: values[at + 6] as number,
    model: values[at + 7] as string,
    channel: values[at + 8] as string,
    group: values[at + 9] as string,
    stream: values[at + 10] as boolean,
    priceVersion: values[at + 11] as string,
  }
}

function packCall(values: unknown[], call: SettledCall): void {
  const { usage } = call
  values.push(
    'settle',
    call.id,
    call.tokenId,
    call.userId,
    call.model,
    call.group,
    call.stream,
    call.priceVersion,
    call.durationMs,
    call.quota,
    call.reason,
    call.delivered,
    call.endedMs,
    call.upstreamModel,
    call.channel,
    call.firstByteMs,
    usage.input,
    usage.cacheRead,
    usage.cacheWrite5m,
    usage.cacheWrite1h,
    usage.output,
    usage.reasoning,
    usage.webSearches,
  )
}

function callAt(values: PackedBatch, at: number): SettledCall {
  return {
    id: values[at] as string,
    tokenId: values[at + 1] as number,
    userId: values[at + 2] as number,
    model: values[at + 3] as string,
    group: values[at + 4] as string,
    stream: values[at + 5] as boolean,
    priceVersion: values[at + 6] as string,
    durationMs: values[at + 7] as number,
    quota: values[at + 8] as number,
    reason: values[at + 9] as SettledCall['reason'],
    delivered: values[at + 10] as boolean,
    endedMs: values[at + 11] as number,
    upstreamModel: values[at + 12] as string,
    channel: values[at + 13] as string,
    firstByteMs: values[at + 14] as number | null,
    usage: {
      input: values[at + 15] as number,
      cacheRead: values[at + 16] as number,
      cacheWrite5m: values[at + 17] as number,
      cacheWrite1h: values[at + 18] as number,
      output: values[at + 19] as number,
      reasoning: values[at + 20] as number,
      webSearches: values[at + 21] as number,
    },
  }
}
