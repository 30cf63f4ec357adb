import { z } from 'zod'
import { MAX_TIME_S } from '../../domain/calendar.ts'
import { type CallExtraFacts, restoreUnstoredCounts } from '../../domain/call-detail.ts'
import { chargeOfCall } from '../../domain/charge.ts'
import { type Decimal, isGreaterDecimal, parseDecimal, ZERO } from '../../domain/decimal.ts'
import type { Json } from '../../domain/json.ts'
import { type Price, priceSetFrom, type ChargeRate, chargeRateOf } from '../../domain/price.ts'
import type { UsageEntry } from '../../domain/records/usage.ts'
import { type ServicePriceTerms, priceWithServiceFactors } from '../../domain/service-rate.ts'
import { type ChargedCounts, chargeAtRate } from '../../domain/charge-at-rate.ts'
import { GatewayError } from '../../errors.ts'
import type { UsageCursor } from '../../store/operations/usage-log.ts'
import { anyField, textField, unionErrorMessage } from '../input-fields.ts'
import type { AdministrationServices } from '../services.ts'
import { usageFilterOfQuery, usageQuery } from './list-usage.ts'

/** The maximum number of calls that are priced again. */
const MAX_CALLS = 1_000_000
/**
 * The maximum number of rows that are read to find the calls of a request, because few rows may match its
 * filter.
 */
const MAX_SCANNED = 4_000_000
/** Number of rows that are read from the database at a time. */
const BATCH_ROWS = 2_000
/** Maximum number of changed prices, ratios or models. */
const MAX_CHANGES = 500
const DAY_S = 86_400

const A_TIME = { error: 'expected a time in Unix seconds' }
const A_RATIO = { error: 'expected a ratio: a decimal from 0 to 1000000 with at most 20 places' }
const MAX_RATIO: Decimal = { digits: 1_000_000n, scale: 0 }
const name = textField('expected the name of a model').min(1, { error: 'expected the name of a model' })

const ratio = z
  .union([textField(A_RATIO.error), z.number()], { error: unionErrorMessage(A_RATIO.error) })
  .transform((given, ctx): Decimal => {
    const read = parseDecimal(given)
    if (read && read.digits >= 0n && read.scale <= 20 && !isGreaterDecimal(read, MAX_RATIO)) return read
    ctx.issues.push({ code: 'custom', message: A_RATIO.error, input: given })
    return z.NEVER
  })
  .meta({ description: 'A decimal from 0 to 1,000,000 with at most 20 places' })

function changesOf<Value extends z.ZodType>(value: Value) {
  return z
    .record(z.string(), value, { error: 'expected an object by name' })
    .refine((given) => Object.keys(given).length <= MAX_CHANGES, {
      error: `expected at most ${MAX_CHANGES} changes`,
    })
    .optional()
}

/**
 * Input with a period, a filter for its calls, and prices, ratios or models that would have been different.
 */
export const whatIfBody = z.object(
  {
    from: z.int(A_TIME).min(0, A_TIME).max(MAX_TIME_S, A_TIME),
    to: z.int(A_TIME).min(0, A_TIME).max(MAX_TIME_S, A_TIME),
    // Strict, because an unknown filter would select nothing, and so the sums would be those of other calls.
    filters: z
      .strictObject(usageQuery.omit({ type: true, start_timestamp: true, end_timestamp: true }).shape, {
        error: 'expected filters of the usage log, but for times and type',
      })
      .optional(),
    change: z
      .object(
        {
          prices: changesOf(
            z.record(z.string(), anyField(), { error: 'expected a price as in gateway.yaml' }),
          ),
          ratios: changesOf(ratio),
          models: changesOf(name),
        },
        { error: 'expected an object with prices, ratios or models' },
      )
      .optional(),
  },
  { error: 'expected an object with from, to and change' },
)

const calls = z.int()
const quota = z.int()

/** What the calls were charged, and what they would have been charged. */
export const whatIfSchema = z.object({
  calls,
  charged: quota,
  would_be: quota,
  difference: quota.meta({ description: 'What they would have been charged, less what they were' }),
  by_model: z
    .array(z.object({ model: z.string(), calls, charged: quota, would_be: quota }))
    .meta({ description: 'The highest charge first' }),
  left_out: z
    .object({ calls, charged: quota })
    .meta({ description: 'Calls whose charge does not follow from counts; they are in no other figure' }),
  exact: z.boolean().meta({ description: 'Whether the log still has all calls of the period' }),
})

type Services = Pick<AdministrationServices, 'store' | 'settings' | 'liveConfig' | 'nowMs'>
type Body = z.output<typeof whatIfBody>

/**
 * Computes what the calls of a period would have cost under changed prices. Nothing is written. `docs/api.md:
 * What if`.
 */
export async function whatIf(
  { store, settings, liveConfig, nowMs }: Services,
  { from, to, filters, change = {} }: Body,
): Promise<z.output<typeof whatIfSchema>> {
  if (to <= from) throw new GatewayError('invalid_request', 'to: expected a time after from')
  const { models, options } = settings()
  const changed = new ChangedRates(
    change,
    (value) => liveConfig.readPrice(value),
    (model) => models.get(model).price,
  )
  const sums = new Sums()
  const rates = new RecordedRates()
  const filter = usageFilterOfQuery({ ...filters, start_timestamp: from, end_timestamp: to - 1 })
  let after: UsageCursor | null = null
  let read = 0
  let scanned = 0
  do {
    const batch: { entries: readonly UsageEntry[]; next: UsageCursor | null } = filter
      ? await store.read('scanUsage', { filter, after, maxRows: BATCH_ROWS })
      : { entries: [], next: null }
    read += batch.entries.length
    scanned += BATCH_ROWS
    if (scanned > MAX_SCANNED)
      throw new GatewayError(
        'too_many_calls',
        `more than ${MAX_SCANNED} calls would have to be looked at: expected a shorter period, or the user or key of the calls`,
      )
    if (read > MAX_CALLS)
      throw new GatewayError('too_many_calls', `more than ${MAX_CALLS} calls: expected a shorter period`)
    const unknown = rates.unknownAmong(batch.entries)
    if (unknown.length > 0) rates.add(await store.read('priceSets', { versions: unknown }))
    for (const entry of batch.entries) {
      const counts = countsOf(entry)
      const recorded = rates.of(entry)
      const rate = recorded && servedBy(recorded, counts.served)
      if (rate && chargeOfCall(rate, counts.usage, counts.form, counts.tools) === entry.quota)
        sums.add(
          entry,
          countable(() => chargeAtRate(servedBy(changed.rateOf(entry, recorded), counts.served), counts)),
        )
      else sums.leaveOut(entry)
    }
    after = batch.next
  } while (after)
  return sums.result(from >= nowMs() / 1000 - options.usage_log_days * DAY_S)
}

/** What calls would have been charged. A charge throws `RangeError` beyond 2^53. */
function countable(charge: () => number): number {
  try {
    const amount = charge()
    if (Number.isSafeInteger(amount)) return amount
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
  }
  throw new GatewayError(
    'invalid_request',
    'change: expected prices and ratios with which a charge can be counted: up to 2^53 quota units',
  )
}

/** The rates (prices with ratios) that would have applied with the changes. */
class ChangedRates {
  readonly #prices: ReadonlyMap<string, Price>
  readonly #ratios: ReadonlyMap<string, Decimal>
  readonly #models: ReadonlyMap<string, string>
  readonly #currentPrice: (model: string) => Price | undefined
  readonly #rates = new Map<ChargeRate, Map<string, ChargeRate>>()

  constructor(
    { prices = {}, ratios = {}, models = {} }: NonNullable<Body['change']>,
    readPrice: (value: Json) => Price,
    currentPrice: (model: string) => Price | undefined,
  ) {
    this.#prices = new Map(
      Object.entries(prices).map(([model, value]) => [
        model,
        named(model, () => readPrice(value as { readonly [key: string]: Json })),
      ]),
    )
    this.#ratios = new Map(Object.entries(ratios))
    this.#models = new Map(Object.entries(models))
    this.#currentPrice = currentPrice
    for (const to of this.#models.values()) if (!this.#prices.has(to) && !currentPrice(to)) throw unpriced(to)
  }

  /** The rate that would have applied to a call which was charged at the rate `recorded`. */
  rateOf({ model, group }: UsageEntry, recorded: ChargeRate): ChargeRate {
    const key = JSON.stringify([model, group])
    const known = this.#rates.get(recorded)?.get(key)
    if (known) return known
    const to = this.#models.get(model)
    const other = to === undefined || to === model ? undefined : this.#currentPrice(to)
    const price = this.#prices.get(to ?? model) ?? other ?? recorded.price
    const factor = this.#ratios.get(group) ?? recorded.ratio
    const rate =
      price === recorded.price && factor === recorded.ratio
        ? recorded
        : chargeRateOf(price, factor, recorded.quotaPerUnit)
    const byCall = this.#rates.get(recorded) ?? new Map<string, ChargeRate>()
    this.#rates.set(recorded, byCall.set(key, rate))
    return rate
  }
}

function named(model: string, read: () => Price): Price {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    throw new GatewayError('invalid_request', `change.prices.${model}: ${error.message}`)
  }
}

function unpriced(model: string): GatewayError {
  return new GatewayError('invalid_request', `change.models: the model ${model} has no price`)
}

/** The rates at which calls were charged, by price version, model and group. */
class RecordedRates {
  readonly #versions = new Set<string>()
  readonly #rates = new Map<string, ChargeRate>()

  unknownAmong(entries: readonly UsageEntry[]): readonly string[] {
    const versions = new Set(entries.map(({ price_version: version }) => version))
    return [...versions].filter((version) => !this.#versions.has(version))
  }

  add(
    sets: readonly {
      readonly version: string
      readonly model: string
      readonly group: string
      readonly content: string
    }[],
  ): void {
    for (const { version, model, group, content } of sets) {
      const { price, ratio: recorded, quotaPerUnit } = priceSetFrom(content)
      this.#versions.add(version)
      this.#rates.set(JSON.stringify([version, model, group]), chargeRateOf(price, recorded, quotaPerUnit))
    }
  }

  of({ price_version: version, model, group }: UsageEntry): ChargeRate | undefined {
    return this.#rates.get(JSON.stringify([version, model, group]))
  }
}

/** The rate for the service tier and region in which a call was served. */
function servedBy(rate: ChargeRate, served: ServicePriceTerms | undefined): ChargeRate {
  return served
    ? chargeRateOf(priceWithServiceFactors(rate.price, served), rate.ratio, rate.quotaPerUnit)
    : rate
}

/** What a call was charged for, and its service tier and region, from its row. */
function countsOf({
  usage,
  particulars,
}: UsageEntry): ChargedCounts & { readonly served: ServicePriceTerms | undefined } {
  const stored = particulars === null ? {} : (JSON.parse(particulars) as CallExtraFacts)
  const { size, quality, tools = [], served } = stored
  return {
    served,
    usage: restoreUnstoredCounts(usage, stored),
    form: { size, quality },
    tools: tools.map(({ kind, count, price }) => ({ kind, count, price: parseDecimal(price) ?? ZERO })),
  }
}

class Sums {
  readonly #byModel = new Map<string, { calls: number; charged: number; would_be: number }>()
  readonly #leftOut = { calls: 0, charged: 0 }

  add({ model, quota: charged }: UsageEntry, wouldBe: number): void {
    const sum = this.#byModel.get(model) ?? { calls: 0, charged: 0, would_be: 0 }
    this.#byModel.set(model, sum)
    sum.calls += 1
    sum.charged += charged
    sum.would_be += wouldBe
  }

  leaveOut({ quota: charged }: UsageEntry): void {
    this.#leftOut.calls += 1
    this.#leftOut.charged += charged
  }

  result(exact: boolean): z.output<typeof whatIfSchema> {
    const byModel = [...this.#byModel].map(([model, sum]) => ({ model, ...sum }))
    const total = { calls: 0, charged: 0, would_be: 0 }
    for (const sum of byModel) {
      total.calls += sum.calls
      total.charged += sum.charged
      total.would_be = countable(() => total.would_be + sum.would_be)
    }
    return {
      ...total,
      difference: total.would_be - total.charged,
      by_model: byModel.toSorted((a, b) => b.charged - a.charged || (a.model < b.model ? -1 : 1)),
      left_out: this.#leftOut,
      exact,
    }
  }
}
