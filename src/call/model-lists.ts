import type { ProtocolName } from '@sluice/wire/protocols'
import type { Caller } from '../accounts/authentication/caller.ts'
import type { Channel } from '../domain/records/channel.ts'
import {
  type Endpoint,
  endpointByName,
  endpointsFor,
  type EndpointType,
  endpointTypes,
} from '../domain/endpoints.ts'
import type { ModelRetirement } from '../domain/model-retirement.ts'
import type { Settings } from '../domain/settings.ts'
import type { ModelRetirements } from '../upstreams/model-retirements.ts'
import { channelProtocols } from './dialects/choose-dialect.ts'
import {
  allowedModelNames,
  groupNameForVendor,
  groupRefusedError,
  vendorGroupsOf,
  usableGroup,
} from './key-permissions.ts'
import { pricedModelOf, nameWithoutThinkingSuffix } from './routing.ts'

/** A model that a key may call. */
export interface ListedModel {
  readonly id: string
  /** Vendor of the model; undefined if unknown. */
  readonly vendor: string | undefined
  readonly endpointTypes: readonly EndpointType[]
  /** The endpoints that serve the model. */
  readonly endpoints: readonly Endpoint[]
  /** Date on which the vendor shuts down the model; undefined if no such date is known. */
  readonly end: ModelRetirement | undefined
}

/** A model and the groups that have a channel for it. */
interface ServedModel {
  readonly id: string
  /** The model's name without a thinking suffix. */
  readonly plain: string
  readonly inGroups: ReadonlyMap<string, ListedModel>
  readonly vendor: string | undefined
}

/** All models that have a channel, sorted by name. */
type Served = ReadonlyMap<string, ServedModel>

/** Lists the models that keys may call: those with a channel, a group and a price. */
export class ModelLists {
  readonly #ends: ModelRetirements
  // The models that have a channel. All callers share them as long as neither the settings nor the known
  // shutdowns of models change.
  readonly #served = new WeakMap<object, Served>()
  // Lists by group, for callers whose key neither limits models nor assigns groups to vendors.
  readonly #ofGroups = new WeakMap<Served, Map<string, readonly ListedModel[]>>()

  constructor(ends: ModelRetirements) {
    this.#ends = ends
  }

  /**
   * Lists all models that a key may call, sorted by name. Throws `group_not_allowed` if the key may use no
   * group. Keys without restrictions of their own get the same array as long as the settings do not change.
   */
  list(settings: Settings, caller: Caller): readonly ListedModel[] {
    const listed = lookup(settings, caller)
    const served = this.#of(settings)
    const isRestricted =
      allowedModelNames(caller.token) !== undefined || vendorGroupsOf(caller.token).size > 0
    if (isRestricted) return listedIn(served, listed)
    const group = groupNameForVendor(caller, NO_ROUTES)
    let ofGroups = this.#ofGroups.get(served)
    if (!ofGroups) this.#ofGroups.set(served, (ofGroups = new Map()))
    let list = ofGroups.get(group)
    if (!list) ofGroups.set(group, (list = listedIn(served, listed)))
    return list
  }

  /** Returns the listed model of this name; undefined if the key may not call it or it does not exist. */
  find(settings: Settings, caller: Caller, id: string): ListedModel | undefined {
    const listed = lookup(settings, caller)
    const model = this.#of(settings).get(id)
    return model && listed(model)
  }

  #of(settings: Settings): Served {
    const ends = this.#ends.of(settings)
    let served = this.#served.get(ends)
    if (!served) this.#served.set(ends, (served = servedBy(settings, (id) => ends.endOf(id)?.end)))
    return served
  }
}

const NO_ROUTES: ReadonlyMap<string, string> = new Map()

function listedIn(
  served: Served,
  listed: (model: ServedModel) => ListedModel | undefined,
): readonly ListedModel[] {
  return [...served.values()].flatMap((model) => listed(model) ?? [])
}

// Each group is looked up once, not once per model.
function lookup(settings: Settings, caller: Caller): (model: ServedModel) => ListedModel | undefined {
  const allowed = allowedModelNames(caller.token)
  const routes = vendorGroupsOf(caller.token)
  const usual = groupNameForVendor(caller, routes)
  const usable = new Set([usual, ...routes.values()].filter((name) => usableGroup(settings, caller, name)))
  if (usable.size === 0) throw groupRefusedError(usual)
  return ({ id, plain, vendor, inGroups }) => {
    if (allowed && !allowed.has(id) && !allowed.has(plain)) return undefined
    const name = groupNameForVendor(caller, routes, vendor)
    return usable.has(name) ? inGroups.get(name) : undefined
  }
}

function servedBy(settings: Settings, endOf: (id: string) => ModelRetirement | undefined): Served {
  const protocols = new Map<string, Map<string, Set<ProtocolName>>>()
  for (const channel of settings.channels) note(protocols, channel)
  for (const id of settings.models.declared) {
    const { fallback, successor } = settings.models.get(id)
    const others = successor === undefined ? fallback : [...fallback, successor]
    for (const channel of settings.channels)
      if (others.some((other) => channel.models.includes(other)))
        note(protocols, { ...channel, models: [id] })
  }
  const served = [...protocols].flatMap(([id, inGroups]) => {
    const plain = nameWithoutThinkingSuffix(id)
    const { vendor, price } = pricedModelOf(settings, id, plain)
    // Moderation models may be listed without a price, because they are free then.
    const isFree = settings.options.unpriced_models === 'free' || endpointByName(id) === 'moderations'
    if (!price && !isFree) return []
    const listed = [...inGroups].map(([group, ofGroup]): [string, ListedModel] => [
      group,
      {
        id,
        vendor,
        endpointTypes: endpointTypes(ofGroup),
        endpoints: endpointsFor(ofGroup, id, price),
        end: endOf(id),
      },
    ])
    return { id, plain, vendor, inGroups: new Map(listed) }
  })
  served.sort((a, b) => (a.id < b.id ? -1 : 1))
  return new Map(served.map((model) => [model.id, model]))
}

function note(protocols: Map<string, Map<string, Set<ProtocolName>>>, channel: Channel): void {
  const { models, groups } = channel
  for (const id of models) {
    const spoken = channelProtocols(channel, id)
    let inGroups = protocols.get(id)
    if (!inGroups) protocols.set(id, (inGroups = new Map()))
    for (const group of groups) {
      const ofGroup = inGroups.get(group)
      if (ofGroup) for (const protocol of spoken) ofGroup.add(protocol)
      else inGroups.set(group, new Set(spoken))
    }
  }
}
