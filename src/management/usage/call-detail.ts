import { z } from 'zod'
import type { StoredError } from '../../domain/failure-cause.ts'
import { restoreUnstoredCounts } from '../../domain/call-detail.ts'
import { costLinesOfCall, roundedCost } from '../../domain/charge.ts'
import { priceWithServiceFactors } from '../../domain/service-rate.ts'
import { decimalText, parseDecimal, ZERO } from '../../domain/decimal.ts'
import { priceSetFrom } from '../../domain/price.ts'
import type { PricedTool } from '../../domain/tool-use.ts'
import { GatewayError } from '../../errors.ts'
import type { CallDetail } from '../../store/operations/usage-log.ts'
import type { AdministrationServices } from '../services.ts'
import { withContentState } from './list-usage.ts'
import { refusedCall, type refusedDetailSchema } from './refused-calls.ts'
import { ownUsageObject, ownUsageSchema, usageObject, usageSchema } from './usage-object.ts'

/** Path parameters with the id of a call. Turns of a WebSocket, rounds and calls of tools have numbers after points. */
export const callIdPath = z.object({
  id: z.string().regex(/^[\da-f-]{1,64}(?:\.\d{1,9}){0,3}$/i, { error: 'expected the id of a call' }),
})

const decimal = z.string()

const costFields = {
  cost: z
    .array(
      z.object({
        kind: z.string(),
        count: z.int(),
        price_usd: decimal.meta({
          description: 'Per million tokens or characters, or per one of anything else',
        }),
        quota: decimal,
      }),
    )
    .nullable()
    .meta({ description: 'Null where the charge does not follow from counts and stored prices' }),
  ratio: decimal.nullable().meta({ description: 'The ratio of the group' }),
  tier_above: z.int().nullable(),
  quota_per_unit: z.int().nullable(),
  rounded: decimal.nullable().meta({ description: 'The sum of the lines, before ratio and rounding' }),
  minimum: z.boolean().meta({ description: 'The charge is the least one, 1, in place of 0' }),
  timing: z.object({
    queued_ms: z.int(),
    connect_ms: z.int(),
    first_byte_ms: z.int().nullable(),
    total_ms: z.int(),
  }),
  error: z
    .object({
      cause: z.string(),
      status: z.int().nullable(),
      type: z.string(),
      code: z.string(),
      message: z.string().meta({ description: 'What the client was told, cleaned; empty if it is not kept' }),
      tried: z.int().meta({ description: 'Number of requests to upstreams' }),
    })
    .nullable()
    .meta({ description: 'Why the call failed; null if it did not, or if the client left' }),
  dropped: z.array(z.string()).meta({ description: 'Fields of the request that the upstream did not get' }),
  idempotent: z.boolean().meta({ description: 'Whether the call had an idempotency key' }),
}

/** A call as its user sees it; `docs/api.md: Usage log`, one call. */
export const ownCallSchema = ownUsageSchema.extend(costFields)

/** A call as administrators see it, with its attempts. */
export const callSchema = usageSchema.extend({
  ...costFields,
  attempts: z.array(
    z.object({
      channel: z.string(),
      key_index: z.int(),
      started_ms: z.int(),
      duration_ms: z.int(),
      status: z.int().nullable(),
      cause: z.string().nullable(),
      message: z.string().meta({ description: "The provider's words, cleaned; empty if there are none" }),
    }),
  ),
})

type DetailServices = Pick<AdministrationServices, 'store' | 'settings' | 'nowMs' | 'content'>

/** One of a user's own calls, and how its charge is made up. */
export async function ownCall(
  services: DetailServices,
  id: string,
  userId: number,
): Promise<z.output<typeof ownCallSchema> | z.output<typeof refusedDetailSchema>> {
  const detail = await services.store.read('callDetail', { id, userId })
  if (!detail) return (await refusedCall(services, id, userId)) ?? refuseUnknown()
  const [entry = detail.entry] = await withContentState(services, [detail.entry])
  return { ...ownUsageObject(entry), ...explained(detail) }
}

/** A call of any user, for administrators, with its attempts, and how its charge is made up. */
export async function callOfAnyUser(
  services: DetailServices,
  id: string,
): Promise<z.output<typeof callSchema> | z.output<typeof refusedDetailSchema>> {
  const detail = await services.store.read('callDetail', { id })
  if (!detail) return (await refusedCall(services, id)) ?? refuseUnknown()
  const attempts = (detail.attempts ?? []).map((attempt) => ({ message: '', ...attempt }))
  const [entry = detail.entry] = await withContentState(services, [detail.entry])
  return { ...usageObject(entry), ...explained(detail), attempts }
}

function refuseUnknown(): never {
  throw new GatewayError('not_found', 'there is no call with this id in the log')
}

function errorOf({ entry, attempts }: CallDetail) {
  if (entry.cause === '') return null
  const kept = entry.error === null ? NO_ERROR : (JSON.parse(entry.error) as StoredError)
  return { cause: entry.cause, status: entry.error_status, ...kept, tried: attempts?.length ?? 0 }
}

const NO_ERROR: StoredError = { type: '', code: '', message: '' }

function explained(detail: CallDetail) {
  const { entry, particulars, priceSet } = detail
  const { queued_ms = 0, connect_ms = 0, dropped = [], idempotent = false, ...chargedBy } = particulars
  const told = {
    timing: { queued_ms, connect_ms, first_byte_ms: entry.first_byte_ms, total_ms: entry.duration_ms },
    dropped: [...dropped],
    idempotent,
    error: errorOf(detail),
  }
  const unknown = {
    cost: null,
    ratio: null,
    tier_above: null,
    quota_per_unit: null,
    rounded: null,
    minimum: false,
  }
  if (priceSet === undefined) return { ...unknown, ...told }
  const { price, ratio, quotaPerUnit } = priceSetFrom(priceSet)
  const { tools: used, size, quality, served } = chargedBy
  const cost = costLinesOfCall(
    served ? priceWithServiceFactors(price, served) : price,
    quotaPerUnit,
    restoreUnstoredCounts(entry.usage, chargedBy),
    { size, quality },
    used?.map(pricedTool),
  )
  const charge = roundedCost(cost, ratio)
  const minimum = charge === 0 && entry.quota === 1 && cost.lines.length > 0
  // Some charges are not the sum of their cost lines: after a crash, for example, the recorded progress is
  // charged.
  const addsUp = minimum || charge === entry.quota
  return {
    cost: addsUp
      ? cost.lines.map(({ kind, count, price: each, quota }) => ({
          kind: kind === 'request' && entry.kind === 'tool' ? ('tool_call' as const) : kind,
          count,
          price_usd: decimalText(each),
          quota: decimalText(quota),
        }))
      : null,
    ratio: decimalText(ratio),
    tier_above: addsUp ? cost.tierAbove : null,
    quota_per_unit: quotaPerUnit,
    rounded: addsUp ? decimalText(cost.sum) : null,
    minimum,
    ...told,
  }
}

function pricedTool({
  kind,
  count,
  price,
}: NonNullable<CallDetail['particulars']['tools']>[number]): PricedTool {
  return { kind, count, price: parseDecimal(price) ?? ZERO }
}
