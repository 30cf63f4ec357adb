import type { Model } from '../domain/records/model.ts'
import type { Settings } from '../domain/settings.ts'
import { GatewayError } from '../errors.ts'
import type { Plan } from './admitted-request.ts'
import type { ParsedRequest } from './dialects/dialect.ts'
import { estimate } from './estimate.ts'
import type { OpenedRequest } from './request-body.ts'
import type { Rates } from './rates.ts'
import { refuseUnlisted } from './tool-terms.ts'
import type { Resolution } from './routing.ts'

/** A checked request and the data that its admission depends on. */
interface CheckedRequest {
  readonly opened: Pick<OpenedRequest, 'dialect' | 'bytes' | 'hold'>
  readonly request: ParsedRequest
  readonly asked: Model
  readonly settings: Settings
}

/** At least one request. */
type Options = readonly [Plan, ...Plan[]]

/** The groups that may serve the call, without duplicates. */
export function groupsOf(options: Options): readonly Plan['group'][] {
  const [first, ...others] = options
  if (others.every(({ group }) => group.name === first.group.name)) return [first.group]
  return [...new Map(options.map(({ group }) => [group.name, group])).values()]
}

/**
 * Creates the request for each model that the call may go to, with prices and limits. Throws or rejects if
 * the first model cannot be used; other models that cannot be used are left out. Returns a promise only if
 * there are other models, or if something must be looked up.
 */
export function admittedRequests(
  checked: CheckedRequest,
  [first, ...others]: readonly Resolution[],
  rates: Rates,
): Options | Promise<Options> {
  const made = admitted(checked, first as Resolution, rates)
  if (others.length === 0) return made instanceof Promise ? made.then((one): Options => [one]) : [made]
  return withFallbacks(made, checked, others, rates)
}

async function withFallbacks(
  first: Plan | Promise<Plan>,
  checked: CheckedRequest,
  others: readonly Resolution[],
  rates: Rates,
): Promise<Options> {
  const options: [Plan, ...Plan[]] = [await first]
  for (const resolution of others) {
    try {
      options.push(await admitted(checked, resolution, rates))
    } catch (error) {
      // A fallback is skipped if it has no price or cannot serve this request.
      if (!asGatewayError(error)) throw error
    }
  }
  return options
}

function admitted(
  { opened, request: asked, asked: askedModel, settings }: CheckedRequest,
  { name, model, group, channels: all }: Resolution,
  rates: Rates,
): Plan | Promise<Plan> {
  const { dialect } = opened
  const request = name === asked.model ? asked : (asked.forModel?.(name) ?? asked)
  const channels = request.channelsFor?.(all) ?? all
  const isFree = request.isFree || (dialect.isFreeUnpriced && !model.price)
  const rate = isFree ? rates.free : rates.of(settings, model, group)
  const made = request.forChannels(channels, model)
  const withChannels = (channelRequests: Plan['channelRequests']): Plan => {
    refuseUnlisted(settings, rate, channelRequests)
    return {
      dialect,
      request,
      body: request.body ?? opened.bytes,
      takeMemory: opened.hold,
      settings,
      asked: askedModel,
      model,
      group,
      rate,
      estimate: estimate(dialect.endpoint, request, channelRequests, rate, settings, model),
      channelRequests,
    }
  }
  return made instanceof Promise ? made.then(withChannels) : withChannels(made)
}
