import { deserialize, serialize } from 'node:v8'
import type { Caller } from '../../accounts/authentication/caller.ts'
import type { Channel } from '../../domain/records/channel.ts'
import type { Group } from '../../domain/records/group.ts'
import type { Model } from '../../domain/records/model.ts'
import type { Settings } from '../../domain/settings.ts'
import type { Routes } from '../../call/routing.ts'
import type { ProtocolName } from '@sluice/wire/protocols'

/**
 * State of a batch at a provider. planned: nothing was asked; asked: the provider was asked to make it; made: it runs;
 * ended: its results are to be read; refused: the provider does not make it; done: every line has a result.
 */
export type PartState = 'planned' | 'asked' | 'made' | 'ended' | 'refused' | 'done'

/** Prices, ratios and groups of the submission of a batch, by which its lines are charged even if the configuration changes later. */
export interface SealedPrices {
  /** Models of lines that go to batches of providers, by the names that the lines have. */
  readonly models: ReadonlyMap<string, Model>
  /** Models that may answer local lines; absent in batches of earlier versions. */
  readonly localModels?: ReadonlyMap<string, Model>
  readonly groups: ReadonlyMap<string, Group>
  readonly priceVersion: string
  readonly quotaPerUnit: number
  /** What decides through which group a call of the key goes; absent in batches of earlier versions. */
  readonly routing?: {
    readonly token: Pick<Caller['token'], 'group' | 'vendor_routes' | 'team_group'>
    readonly user: Pick<Caller['user'], 'group'>
  }
}

/** The settings with the prices and ratios of the submission. Limits of models that answer local lines are the current ones. */
export function withSealedPrices(current: Settings, sealed: SealedPrices): Settings {
  const { models: atProviders, localModels = [], groups, priceVersion, quotaPerUnit } = sealed
  const models = new Map<string, Model>()
  for (const [name, { price, pricedAs, priceMoment, vendor }] of localModels)
    models.set(name, { ...current.models.get(name), price, pricedAs, priceMoment, vendor })
  for (const [name, model] of atProviders) models.set(name, model)
  return {
    ...current,
    priceVersion,
    models: { ...current.models, get: (name) => models.get(name) ?? current.models.get(name) },
    groups: new Map([...current.groups, ...groups]),
    options: { ...current.options, quota_per_unit: quotaPerUnit },
  }
}

/** What is known of a batch at a provider, as it is stored. */
export interface PartFacts {
  readonly state: PartState
  /** Where the provider is asked, whatever becomes of the channel. */
  readonly channel: Channel
  readonly key: string
  readonly group: string
  /** The model as the client names it, and as the provider does. */
  readonly requested: string
  readonly upstreamModel: string
  readonly protocol: ProtocolName
  readonly path: string
  readonly headers: readonly string[]
  /** Numbers of the lines, in order. */
  readonly lines: Uint32Array
  /** Whether guards have something to know about the answers. */
  readonly hasStates: boolean
  /** Names of the channels that have refused the lines before. */
  readonly refusedBy: readonly string[]
  readonly intentMs: number
  /** Number of times that making it has begun anew, because the provider had too much to do. */
  readonly round: number
  readonly providerId?: string | undefined
  /** Files at the provider that the batch alone needs. */
  readonly uploads?: readonly string[] | undefined
  readonly results?: readonly string[] | undefined
  readonly how?: 'completed' | 'expired' | 'cancelled' | 'failed' | undefined
  /** Set when the provider was told to cancel. */
  readonly isCancelled?: boolean | undefined
  /** What the provider has refused the batch with. */
  readonly refusal?: { readonly status: number; readonly body: string } | undefined
}

/** A batch at a provider: lines of a user's batch for one channel, key and upstream model. */
export class BatchPart {
  readonly key: string
  facts: PartFacts
  #lines: ReadonlySet<number> | undefined

  constructor(key: string, facts: PartFacts) {
    this.key = key
    this.facts = facts
  }

  /** The name by which the provider knows the batch. It says nothing of the client. */
  get name(): string {
    return nameOfPart(this.key, this.facts.round)
  }

  has(line: number): boolean {
    this.#lines ??= new Set(this.facts.lines)
    return this.#lines.has(line)
  }

  /** The number of its line that has this id at the provider; undefined if none has. */
  lineOf(id: string): number | undefined {
    const prefix = lineId(this.key, 0).slice(0, -1)
    const digits = id.slice(prefix.length)
    const isId = id.startsWith(prefix) && /^[1-9]\d{0,6}$/.test(digits)
    return isId && this.has(Number(digits)) ? Number(digits) : undefined
  }

  change(facts: Partial<PartFacts>): void {
    this.facts = { ...this.facts, ...facts }
  }

  /** Whether its lines still wait for the provider. */
  get isOpen(): boolean {
    const { state } = this.facts
    return state !== 'refused' && state !== 'done'
  }

  /** Whether the provider has the batch, or may have it. */
  get isAtProvider(): boolean {
    return this.isOpen && this.facts.state !== 'planned'
  }

  /** The channel, with the model and the group by whose prices it is charged. */
  routes(settings: Settings): Routes {
    const { requested: name, channel, group: groupName } = this.facts
    const group = settings.groups.get(groupName)
    if (!group) throw new Error(`the group ${groupName} of a batch is unknown`)
    const model = settings.models.get(name)
    return { requestedModel: model, resolutions: [{ name, model, group, channels: [channel] }] }
  }
}

/** Keys of the parts of a batch sort by their numbers. */
export function partKey(batchId: string, number: number): string {
  return `${batchId}-${String(number).padStart(6, '0')}`
}

export function partKeys(batchId: string): { readonly from: string; readonly to: string } {
  return { from: partKey(batchId, 0), to: partKey(batchId, 999_999) }
}

function nameOfPart(key: string, round: number): string {
  return `${key.slice(key.indexOf('_') + 1)}-${round}`
}

/** The id of a line for the provider; `name` is that of the part. At most 64 characters that all APIs allow. */
export function lineId(key: string, line: number): string {
  return `${key.slice(key.indexOf('_') + 1)}-${line}`
}

/** A value with maps, sets and large integers as text, and the value of such a text. */
export function textOfValue(value: PartFacts | SealedPrices): string {
  return serialize(value).toString('base64')
}

export function valueOfText(text: string): unknown {
  return deserialize(Buffer.from(text, 'base64'))
}
