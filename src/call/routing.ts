import { withoutThinkingSuffix } from '@sluice/wire/messages'
import type { Caller } from '../accounts/authentication/caller.ts'
import { type Endpoint, endpointsFor, ENDPOINTS } from '../domain/endpoints.ts'
import type { Channel } from '../domain/records/channel.ts'
import { type ProtocolName, PROTOCOLS } from '@sluice/wire/protocols'
import type { Group } from '../domain/records/group.ts'
import {
  FALLBACK_REASONS,
  type FallbackReason,
  hasFallbackReasons,
  type Model,
} from '../domain/records/model.ts'
import type { Settings } from '../domain/settings.ts'
import { GatewayError } from '../errors.ts'
import type { Dialect } from './dialects/dialect.ts'
import {
  groupNameForVendor,
  groupRefusedError,
  requireAllowedModel,
  vendorGroupsOf,
  usableGroup,
} from './key-permissions.ts'
import type { ChannelLoad } from '../upstreams/channel-load.ts'
import type { ModelRetirements } from '../upstreams/model-retirements.ts'
import { truncateName } from './truncate-name.ts'

/** A model that can serve a call, its channels, and the group whose prices apply. */
export interface ResolvedModel {
  /** Name under which the model is requested. */
  readonly name: string
  readonly model: Model
  readonly group: Group
  /** Channels in the order in which they are tried; never empty. */
  readonly channels: readonly Channel[]
  /** Why the model is tried, if not because the others have failed. */
  readonly reason?: FallbackReason
}

/** The models that can serve a call, in the order in which they are tried. */
export interface Routes {
  /** The model that the client requested. */
  readonly requestedModel: Model
  /** The models with their channels, in the order in which they are tried; never empty. */
  readonly resolutions: readonly ResolvedModel[]
}

/** Channels that serve a model at an endpoint, in a group. */
interface ServingChannels {
  readonly endpoint: Endpoint
  readonly group: string
  readonly channels: readonly Channel[]
}

/** The endpoint that received a call, and the protocol of its clients. */
export type CalledEndpoint = Pick<Dialect, 'name' | 'endpoint' | 'servedBy' | 'hasNoFallbacks'>

/** The model name that the client sent, and whether the response is a stream. */
interface CalledModel {
  readonly name: string
  readonly stream: boolean
}

const NO_FALLBACKS: readonly string[] = []

/**
 * Hints in the error message for a model that was requested at the wrong endpoint, by the protocols of the
 * model's channels.
 */
const ELSEWHERE = {
  chat: ': its channels serve /v1/chat/completions, /v1/messages, /v1/responses and /v1beta/models',
  rerank: ': its channels serve /v1/rerank alone',
} as const

/** Chooses the channels of calls. */
export class Routing {
  readonly #random: () => number
  /**
   * Channels by model name, cached. Names without channels are not cached, because clients may request any
   * name.
   */
  readonly #found = new WeakMap<Settings, Map<string, ServingChannels[]>>()

  readonly #load: ChannelLoad
  readonly #ends: ModelRetirements

  /** `random` returns numbers in [0, 1). */
  constructor(load: ChannelLoad, ends: ModelRetirements, random: () => number = Math.random) {
    this.#load = load
    this.#ends = ends
    this.#random = random
  }

  /**
   * Finds the models for a call, with their groups and channels: the requested model and, if `isForAnyModel`
   * and the endpoint has fallbacks, its available ones. If the requested model was shut down at all its
   * channels, its successor takes its place if `isForAnyModel`. Throws `model_not_allowed` for a model outside the key's limits; `group_not_allowed` for a
   * group that the user may not use; `model_not_found` if there is no channel, with a hint if there is one
   * for another endpoint; `unsupported_endpoint` if no channel of the model has the endpoint.
   */
  resolve(
    settings: Settings,
    caller: Caller,
    call: CalledModel,
    called: CalledEndpoint,
    isForAnyModel: boolean,
  ): Routes {
    const mayFallBack = isForAnyModel && !called.hasNoFallbacks
    const { name } = call
    const plain = ENDPOINTS[called.name].hasThinkingSuffix ? nameWithoutThinkingSuffix(name) : name
    requireAllowedModel(caller.token, name, plain)
    const requestedModel = pricedModelOf(settings, name, plain)
    const group = groupOf(settings, caller, requestedModel)
    const own = this.#resolution(settings, { ...call, plain }, called, requestedModel, group)
    const fallbacks =
      mayFallBack && requestedModel.fallback.length > 0 ? requestedModel.fallback : NO_FALLBACKS
    const suffix = name.slice(plain.length)
    const others = fallbacks.flatMap(
      (other) => this.#fallback(settings, caller, { ...call, name: other }, called, suffix) ?? [],
    )
    const first = isForAnyModel
      ? this.#successor(settings, caller, { ...call, suffix }, called, { requestedModel, own })
      : own
    const resolutions = first ? [first, ...others] : others
    if (resolutions.length === 0) throw unserved(settings, group, called, name, plain)
    if (!mayFallBack || !hasFallbackReasons(requestedModel)) return { requestedModel, resolutions }
    const forReasons = FALLBACK_REASONS.flatMap((reason) =>
      requestedModel[reason].flatMap((other) => {
        const found = this.#fallback(settings, caller, { ...call, name: other }, called, suffix)
        return found ? [{ ...found, reason }] : []
      }),
    )
    return { requestedModel, resolutions: [...resolutions, ...forReasons] }
  }

  /**
   * Returns the model itself if a channel still serves it; otherwise the first of its successors that is
   * served.
   */
  #successor(
    settings: Settings,
    caller: Caller,
    { stream, suffix }: Pick<CalledModel, 'stream'> & { readonly suffix: string },
    called: CalledEndpoint,
    { requestedModel, own }: { readonly requestedModel: Model; readonly own: ResolvedModel | undefined },
  ): ResolvedModel | undefined {
    if (requestedModel.successor === undefined || (own && this.#isServed(settings, own))) return own
    let last: ResolvedModel | undefined
    for (const name of successorsOf(settings, requestedModel)) {
      const found = this.#fallback(settings, caller, { name, stream }, called, suffix)
      if (found && this.#isServed(settings, found)) return found
      last ??= found
    }
    return last ?? own
  }

  /** Whether the model has a channel whose provider has not shut the model down. */
  #isServed(settings: Settings, { name, channels }: ResolvedModel): boolean {
    const ends = this.#ends.of(settings)
    if (ends.isEmpty) return true
    const nowMs = Date.now()
    return channels.some((channel) => !ends.hasEnded(channel, name, nowMs))
  }

  // Uses the suffix that the client gave if a channel supports it; otherwise the name without it.
  #fallback(
    settings: Settings,
    caller: Caller,
    { name, stream }: CalledModel,
    called: CalledEndpoint,
    suffix: string,
  ): ResolvedModel | undefined {
    const model = settings.models.get(name)
    const group = usableGroup(
      settings,
      caller,
      groupNameForVendor(caller, vendorGroupsOf(caller.token), model.vendor),
    )
    if (!group) return undefined
    for (const fullName of suffix === '' ? [name] : [name + suffix, name]) {
      const found = this.#resolution(settings, { name: fullName, plain: name, stream }, called, model, group)
      if (found) return found
    }
    return undefined
  }

  #resolution(
    settings: Settings,
    { name, plain, stream }: CalledModel & { readonly plain: string },
    called: CalledEndpoint,
    model: Model,
    group: Group,
  ): ResolvedModel | undefined {
    const serving = this.#serving(settings, group, called, name, plain)
    if (serving.length === 0) return undefined
    if (serving.length === 1) return { name, model, group, channels: serving }
    const measure = this.#load.measure(model.balance, { model: name, stream }, this.#random)
    return { name, model, group, channels: inOrder(serving, called.name, this.#random, measure) }
  }

  #serving(
    settings: Settings,
    group: Group,
    called: CalledEndpoint,
    name: string,
    plain: string,
  ): readonly Channel[] {
    let found = this.#found.get(settings)
    if (!found) this.#found.set(settings, (found = new Map()))
    const ofName = found.get(name)
    const known = ofName?.find((one) => one.endpoint === called.endpoint && one.group === group.name)
    if (known) return known.channels
    const possible = channelsOf(settings, group, name, plain).filter((channel) =>
      hasEndpoint(channel, called),
    )
    const literal = possible.filter(({ models }) => models.includes(name))
    const channels = literal.length > 0 ? literal : possible
    if (channels.length === 0) return channels
    const added = { endpoint: called.endpoint, group: group.name, channels }
    if (ofName) ofName.push(added)
    else found.set(name, [added])
    return channels
  }
}

/** The successor of a model, the successor's successor, and so on. */
function successorsOf({ models }: Settings, { name, successor }: Model): readonly string[] {
  const found = new Set([name])
  for (let next = successor; next !== undefined && !found.has(next); next = models.get(next).successor)
    found.add(next)
  return [...found].slice(1)
}

/** The models that may answer calls of a model: itself, its fallbacks and its successors. */
export function answeringModels(settings: Settings, name: string): readonly string[] {
  const model = settings.models.get(name)
  const fallbacks = [model.fallback, ...FALLBACK_REASONS.map((reason) => model[reason])].flat()
  return [name, ...fallbacks, ...successorsOf(settings, model)]
}

function channelsOf(settings: Settings, group: Group, name: string, plain: string): readonly Channel[] {
  return settings.channels.filter(
    (channel) => channel.groups.includes(group.name) && serves(channel, name, plain),
  )
}

/** Whether a channel serves an endpoint. */
export function hasEndpoint({ protocol: protocols }: Channel, { name, servedBy }: CalledEndpoint): boolean {
  if (servedBy) return protocols.some((one) => servedBy.includes(one))
  return protocols.some((one) => isReranking(one) === isReranking(name))
}

function unserved(
  settings: Settings,
  group: Group,
  { name: protocol, endpoint, servedBy }: CalledEndpoint,
  name: string,
  plain: string,
): GatewayError {
  const others = channelsOf(settings, group, name, plain)
  if (servedBy && others.length > 0) {
    const { price } = pricedModelOf(settings, name, plain)
    const endpoints = endpointsFor(
      new Set(others.flatMap(({ protocol: protocols }) => protocols)),
      name,
      price,
    )
    return new GatewayError(
      'unsupported_endpoint',
      `model ${truncateName(name)} has no channel for ${endpoint}: it supports ${endpoints.join(', ')}`,
    )
  }
  const hint = others.length > 0 ? ELSEWHERE[isReranking(protocol) ? 'chat' : 'rerank'] : ''
  return new GatewayError(
    'model_not_found',
    `no available channel for model ${truncateName(name)} under group ${group.name}${hint}`,
  )
}

// A rerank request contains a list of documents, not a conversation, so it cannot be converted between
// protocols.
function isReranking(protocol: ProtocolName): boolean {
  return !PROTOCOLS[protocol].isConversation
}

/**
 * Whether calls of a model go to a channel. A name with the thinking suffix is served under its plain name only by messages
 * channels, where the suffix becomes a field of the request, and only if no channel has the name itself.
 */
export function serves(
  { protocol: protocols, models, batches }: Channel,
  name: string,
  plain: string,
): boolean {
  if (batches === 'only') return false
  return models.includes(name) || (plain !== name && protocols.includes('messages') && models.includes(plain))
}

/** The name without the thinking suffix, or the name itself if it has none. */
export function nameWithoutThinkingSuffix(name: string): string {
  return withoutThinkingSuffix(name) ?? name
}

/**
 * The model by which a name is priced and routed: the model of that name if it has a price, otherwise that of
 * the plain name.
 */
export function pricedModelOf(settings: Settings, name: string, plain: string): Model {
  const model = settings.models.get(name)
  return plain === name || model.price ? model : settings.models.get(plain)
}

/**
 * Throws `model_not_allowed` or `group_not_allowed` if a caller may not use a model, whether or not a channel
 * serves it.
 */
export function requirePermission(settings: Settings, caller: Caller, name: string): void {
  const plain = nameWithoutThinkingSuffix(name)
  requireAllowedModel(caller.token, name, plain)
  groupOf(settings, caller, pricedModelOf(settings, name, plain))
}

function groupOf(settings: Settings, caller: Caller, { vendor }: Model): Group {
  const name = groupNameForVendor(caller, vendorGroupsOf(caller.token), vendor)
  const group = usableGroup(settings, caller, name)
  if (!group) throw groupRefusedError(name)
  return group
}

// Sorts channels by priority; then those with the client's protocol come first; then those with a smaller
// `measure` (load or latency); the rest is random by weight. Of equal priority and protocol, channels of
// weight 0 come last.
function inOrder(
  channels: readonly Channel[],
  protocol: ProtocolName,
  random: () => number,
  measure: ((channel: Channel) => number) | undefined,
): Channel[] {
  const drawn = channels.map((channel) => ({
    channel,
    key: drawKey(channel.weight, random()),
    measured: measure && channel.weight > 0 ? measure(channel) : 0,
  }))
  drawn.sort(
    (a, b) =>
      b.channel.priority - a.channel.priority ||
      Number(b.channel.protocol.includes(protocol)) - Number(a.channel.protocol.includes(protocol)) ||
      Number(a.channel.weight === 0) - Number(b.channel.weight === 0) ||
      compared(a.measured, b.measured) ||
      b.key - a.key,
  )
  return drawn.map(({ channel }) => channel)
}

// Equal values are compared first, because the difference of two infinities would be NaN.
function compared(a: number, b: number): number {
  return a === b ? 0 : a - b
}

// Sorting by u^(1/weight) is a random draw without replacement in proportion to the weights. Weight 0 comes
// last.
function drawKey(weight: number, u: number): number {
  return weight > 0 ? u ** (1 / weight) : u - 1
}
