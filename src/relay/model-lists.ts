import type { Channel, ProtocolName } from '../domain/channel.ts'
import { type EndpointType, endpointTypes } from '../domain/endpoint-types.ts'
import type { Settings } from '../domain/settings.ts'
import {
  type KeyAndOwner,
  allowedNames,
  groupName,
  groupRefused,
  routesOf,
  usableGroup,
} from './permissions.ts'
import { modelOf, plainName } from './routing.ts'

/** A model that a key may call. */
export interface ListedModel {
  readonly id: string
  /** Undefined if nobody says. */
  readonly vendor: string | undefined
  readonly endpointTypes: readonly EndpointType[]
}

/** A model with the groups that some channel serves it to. */
interface ServedModel {
  readonly id: string
  /** Without the thinking suffix. */
  readonly plain: string
  readonly inGroups: ReadonlyMap<string, ListedModel>
  readonly vendor: string | undefined
}

/** All models that are served to anybody, by their names in order. */
type Served = ReadonlyMap<string, ServedModel>

/** Lists what keys may call: what a call of that name would find a channel, a group and a price for. */
export class ModelLists {
  // What is served is the same for everybody as long as the settings are.
  readonly #served = new WeakMap<Settings, Served>()

  /**
   * All models that a key may call, by their names in order; `group_not_allowed` if it may use no group at
   * all.
   */
  list(settings: Settings, chooser: KeyAndOwner): ListedModel[] {
    const listed = lookup(settings, chooser)
    return [...this.#of(settings).values()].flatMap((model) => listed(model) ?? [])
  }

  /** The one model of that name; undefined if the list has it not. */
  find(settings: Settings, chooser: KeyAndOwner, id: string): ListedModel | undefined {
    const listed = lookup(settings, chooser)
    const model = this.#of(settings).get(id)
    return model && listed(model)
  }

  #of(settings: Settings): Served {
    let served = this.#served.get(settings)
    if (!served) this.#served.set(settings, (served = servedBy(settings)))
    return served
  }
}

// A group is looked up once for each name, not for each model.
function lookup(settings: Settings, chooser: KeyAndOwner): (model: ServedModel) => ListedModel | undefined {
  const allowed = allowedNames(chooser.token)
  const routes = routesOf(chooser.token)
  const usual = groupName(chooser, routes)
  const usable = new Set([usual, ...routes.values()].filter((name) => usableGroup(settings, chooser, name)))
  if (usable.size === 0) throw groupRefused(usual)
  return ({ id, plain, vendor, inGroups }) => {
    if (allowed && !allowed.has(id) && !allowed.has(plain)) return undefined
    const name = groupName(chooser, routes, vendor)
    return usable.has(name) ? inGroups.get(name) : undefined
  }
}

function servedBy(settings: Settings): Served {
  const protocols = new Map<string, Map<string, Set<ProtocolName>>>()
  for (const channel of settings.channels) note(protocols, channel)
  const served = [...protocols].flatMap(([id, inGroups]) => {
    const plain = plainName(id)
    const { vendor, price } = modelOf(settings, id, plain)
    if (!price && settings.options.unpricedModels === 'refuse') return []
    const listed = [...inGroups].map(([group, spoken]): [string, ListedModel] => [
      group,
      { id, vendor, endpointTypes: endpointTypes(spoken) },
    ])
    return { id, plain, vendor, inGroups: new Map(listed) }
  })
  served.sort((a, b) => (a.id < b.id ? -1 : 1))
  return new Map(served.map((model) => [model.id, model]))
}

function note(
  protocols: Map<string, Map<string, Set<ProtocolName>>>,
  { models, groups, protocol }: Channel,
): void {
  for (const id of models) {
    let inGroups = protocols.get(id)
    if (!inGroups) protocols.set(id, (inGroups = new Map()))
    for (const group of groups) {
      const spoken = inGroups.get(group)
      if (spoken) spoken.add(protocol)
      else inGroups.set(group, new Set([protocol]))
    }
  }
}
