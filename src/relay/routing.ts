import type { Caller } from '../auth/caller.ts'
import type { Channel, ProtocolName } from '../domain/channel.ts'
import type { Group, Model, Settings } from '../domain/settings.ts'
import { GatewayError } from '../errors.ts'
import { withoutThinkingSuffix } from '../protocols/messages/index.ts'
import { groupName, groupRefused, requireAllowedModel, routesOf, usableGroup } from './key-permissions.ts'
import { truncatedName } from './truncated-name.ts'

/** Channels that a call may go to, and the group whose prices hold. */
export interface Resolution {
  readonly model: Model
  readonly group: Group
  /** Channels in the order in which to try them; never empty. */
  readonly channels: readonly Channel[]
}

/** Channels that serve a model to clients of a protocol, in a group. */
interface ServingChannels {
  readonly protocol: ProtocolName
  readonly group: string
  readonly channels: readonly Channel[]
}

/** Hints for a model that was asked for at the wrong endpoint, by the protocols of its channels. */
const ELSEWHERE = {
  chat: ': its channels serve /v1/chat/completions, /v1/messages, /v1/responses and /v1beta/models',
  rerank: ': its channels serve /v1/rerank alone',
} as const

/** Chooses the channels of calls. */
export class Routing {
  readonly #random: () => number
  /** Channels by the name of the model. Names without any are not kept: clients may ask for any name. */
  readonly #found = new WeakMap<Settings, Map<string, ServingChannels[]>>()

  /** `random` yields numbers in [0, 1). */
  constructor(random: () => number = Math.random) {
    this.#random = random
  }

  /**
   * The model, group and channels of a call. Errors: `model_not_allowed` for a model outside the key's
   * limits; `group_not_allowed` for a group that the user may not use; `model_not_found` where there is no
   * channel, with a hint where there is one for another endpoint.
   */
  resolve(settings: Settings, caller: Caller, name: string, protocol: ProtocolName): Resolution {
    const plain = protocol === 'chat' ? plainName(name) : name
    requireAllowedModel(caller.token, name, plain)
    const model = modelOf(settings, name, plain)
    const group = groupOf(settings, caller, model)
    const serving = this.#serving(settings, group, protocol, name, plain)
    if (serving.length === 0) {
      const other = isReranking(protocol) ? 'chat' : 'rerank'
      const isElsewhere = this.#serving(settings, group, other, name, plain).length > 0
      throw new GatewayError(
        'model_not_found',
        `no available channel for model ${truncatedName(name)} under group ${group.name}${isElsewhere ? ELSEWHERE[other] : ''}`,
      )
    }
    const channels = serving.length === 1 ? serving : inOrder(serving, protocol, this.#random)
    return { model, group, channels }
  }

  #serving(
    settings: Settings,
    group: Group,
    protocol: ProtocolName,
    name: string,
    plain: string,
  ): readonly Channel[] {
    let found = this.#found.get(settings)
    if (!found) this.#found.set(settings, (found = new Map()))
    const ofName = found.get(name)
    const known = ofName?.find((one) => one.protocol === protocol && one.group === group.name)
    if (known) return known.channels
    const channels = settings.channels.filter(
      (channel) =>
        channel.protocols.some((one) => isReranking(one) === isReranking(protocol)) &&
        channel.groups.includes(group.name) &&
        serves(channel, name, plain),
    )
    if (channels.length === 0) return channels
    const added = { protocol, group: group.name, channels }
    if (ofName) ofName.push(added)
    else found.set(name, [added])
    return channels
  }
}

// Conversations are converted from one protocol to another; a list of documents is no conversation.
function isReranking(protocol: ProtocolName): boolean {
  return protocol === 'rerank'
}

// Only messages upstreams understand a request without the suffix: it becomes a field there.
function serves({ protocols, models }: Channel, name: string, plain: string): boolean {
  return models.includes(name) || (plain !== name && protocols.includes('messages') && models.includes(plain))
}

/** The name without the thinking suffix; the name itself where it has none. */
export function plainName(name: string): string {
  return withoutThinkingSuffix(name) ?? name
}

/**
 * The model by which a name is priced and routed: its own where it has a price, else that of the plain
 * name.
 */
export function modelOf(settings: Settings, name: string, plain: string): Model {
  const model = settings.models.get(name)
  return plain === name || model.price ? model : settings.models.get(plain)
}

function groupOf(settings: Settings, caller: Caller, { vendor }: Model): Group {
  const name = groupName(caller, routesOf(caller.token), vendor)
  const group = usableGroup(settings, caller, name)
  if (!group) throw groupRefused(name)
  return group
}

// Higher priority first; among equals those of the client's protocol; among these a draw by weight.
function inOrder(channels: readonly Channel[], protocol: ProtocolName, random: () => number): Channel[] {
  const key = new Map(channels.map((channel) => [channel, drawKey(channel.weight, random())]))
  return [...channels].sort(
    (a, b) =>
      b.priority - a.priority ||
      Number(b.protocols.includes(protocol)) - Number(a.protocols.includes(protocol)) ||
      (key.get(b) ?? 0) - (key.get(a) ?? 0),
  )
}

// Sorting by u^(1/weight) draws without replacement in proportion to the weights; weight 0 comes last.
function drawKey(weight: number, u: number): number {
  return weight > 0 ? u ** (1 / weight) : u - 1
}
