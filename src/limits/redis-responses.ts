import { type ShareResponse, type ShareRequest, slotsOf } from './share-messages.ts'

/** More amounts than slots there are: no window has as many. */
const MOST_AMOUNTS = 512

/** What a beat tells. Throws unless it can be one. */
export function readHeartbeat(told: unknown): { nowMs: number; memory: string; nodes: number } {
  const [nowMs, memory, nodes] = list(told)
  return { nowMs: count(nowMs), memory: text(memory), nodes: Math.max(1, Math.min(10_000, count(nodes))) }
}

/**
 * What an exchange tells: an answer to the question, or that the memory is another. Throws unless it can be
 * one.
 */
export function readShareResponse(told: unknown, question: ShareRequest): ShareResponse | { memory: string } {
  const [memory, ...rest] = list(told)
  if (rest.length === 0) return { memory: text(memory) }
  const [nowMs = 0, granted = 0, slot = 0, ...pairs] = rest.map(count)
  if (rest.length < 3 || pairs.length % 2 !== 0 || pairs.length > 2 * MOST_AMOUNTS) throw nonsense()
  const { widthMs, ahead } = slotsOf(question.windowMs)
  if (granted > Math.max(question.need, question.want)) throw nonsense()
  if (slot > Math.ceil(nowMs / widthMs) + ahead) throw nonsense()
  const amounts = Array.from(
    { length: pairs.length / 2 },
    (_, i) => [pairs[2 * i] ?? 0, pairs[2 * i + 1] ?? 0] as const,
  )
  if (amounts.some(([at], i) => at > slot || at <= (amounts[i - 1]?.[0] ?? -1))) throw nonsense()
  return { nowMs, granted, slot, amounts }
}

function list(told: unknown): readonly unknown[] {
  if (!Array.isArray(told) || told.length === 0) throw nonsense()
  return told as readonly unknown[]
}

function count(told: unknown): number {
  if (typeof told !== 'number' || !Number.isSafeInteger(told) || told < 0) throw nonsense()
  return told
}

function text(told: unknown): string {
  if (typeof told !== 'string' || !/^[\d.]{1,64}$/.test(told)) throw nonsense()
  return told
}

function nonsense(): Error {
  return new Error('the server says what no server would say')
}
