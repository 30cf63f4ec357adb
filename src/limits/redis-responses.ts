import type { SlotReport } from './place-peers.ts'
import { type PermitResponse, type PermitRequest, bucketsOf } from './share-messages.ts'

/** Maximum number of amounts in a response; more than the number of slots in any window. */
const MAX_AMOUNTS = 512

/** Parses the response to a heartbeat. Throws if it is invalid. */
export function readHeartbeat(value: unknown): { nowMs: number; generation: string } {
  const [nowMs, generation] = list(value)
  return { nowMs: count(nowMs), generation: text(generation) }
}

/**
 * Parses the response to a `PermitRequest`; `{ generation }` alone means that the request was stale. Throws if
 * it is invalid.
 */
export function readPermitResponse(
  value: unknown,
  request: PermitRequest,
): PermitResponse | { generation: string } {
  const [generation, ...rest] = list(value)
  if (rest.length === 0) return { generation: text(generation) }
  const [nowMs = 0, version = 0, granted = 0, slot = 0, ...pairs] = rest.map(count)
  if (rest.length < 4 || pairs.length % 2 !== 0 || pairs.length > 2 * MAX_AMOUNTS) throw invalidResponse()
  const { widthMs, ahead } = bucketsOf(request.windowMs)
  if (granted > Math.max(request.need, request.want)) throw invalidResponse()
  if (slot > Math.ceil(nowMs / widthMs) + ahead) throw invalidResponse()
  const amounts = Array.from(
    { length: pairs.length / 2 },
    (_, i) => [pairs[2 * i] ?? 0, pairs[2 * i + 1] ?? 0] as const,
  )
  if (amounts.some(([at], i) => at > slot || at <= (amounts[i - 1]?.[0] ?? -1))) throw invalidResponse()
  return { nowMs, version, granted, slot, amounts }
}

/**
 * Parses the response to a `SlotReport`; `{ generation }` alone means that the report was stale. Throws if
 * it is invalid.
 */
export function readSlotResponse(
  value: unknown,
  { held, want, max }: SlotReport,
): { granted: number } | { generation: string } {
  const [generation, granted, ...rest] = list(value)
  if (granted === undefined) return { generation: text(generation) }
  if (rest.length > 0 || count(granted) > Math.max(0, Math.min(want, max - held))) throw invalidResponse()
  return { granted: count(granted) }
}

function list(value: unknown): readonly unknown[] {
  if (!Array.isArray(value) || value.length === 0) throw invalidResponse()
  return value as readonly unknown[]
}

function count(value: unknown): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) throw invalidResponse()
  return value
}

function text(value: unknown): string {
  if (typeof value !== 'string' || !/^[\d.]{1,64}$/.test(value)) throw invalidResponse()
  return value
}

function invalidResponse(): Error {
  return new Error('the Redis server sent an invalid response')
}
