import { withoutThinkingSuffix } from '@sluice/wire/messages'
import { isDeepStrictEqual } from 'node:util'
import { retirementTimeMs, type ListedRetirement, type ModelRetirement } from '../domain/model-retirement.ts'
import { announcedRetirement } from '../domain/price-data/retired-models.ts'
import type { Channel } from '../domain/records/channel.ts'
import type { Settings } from '../domain/settings.ts'

/**
 * Headers that state when a model was deprecated (RFC 9745) and when it is shut down (RFC 8594).
 * `docs/api.md: Ends of models`.
 */
type EndHeaders = Readonly<Record<'deprecation' | 'sunset', string>>

/** A model in the configuration that will be shut down. */
export interface RetiringModel {
  readonly model: string
  readonly end: ModelRetirement
  readonly headers: EndHeaders
}

/**
 * Dates of model shutdowns, from the price data and from upstreams' model lists. A date applies to channels
 * with the base URL for which it was stated. `docs/api.md: Ends of models`.
 */
export class ModelRetirements {
  readonly #tag: (baseUrl: string) => string
  #listed: ReadonlyMap<string, ReadonlyMap<string, ModelRetirement>> = new Map()
  #indexes = new WeakMap<Settings, EndIndex>()

  /** `tag` returns a hash of a base URL, which is stored in its place. */
  constructor(tag: (baseUrl: string) => string) {
    this.#tag = tag
  }

  /** Replaces the shutdown dates that come from upstreams' model lists. */
  replaceListed(ends: readonly ListedRetirement[]): void {
    const bySource = new Map<string, Map<string, ModelRetirement>>()
    for (const { source, model, ends_on: on, known_ms: knownMs } of ends) {
      const ofSource = bySource.get(source) ?? new Map<string, ModelRetirement>()
      bySource.set(source, ofSource)
      ofSource.set(model, { on, knownMs })
    }
    // If no date has changed, the indexes stay, together with everything that was computed from them.
    if (isDeepStrictEqual(bySource, this.#listed)) return
    this.#listed = bySource
    this.#indexes = new WeakMap()
  }

  /**
   * The shutdown dates in the model list of the upstream with this base URL, by the upstream's names of the
   * models.
   */
  listedAt({ base_url: baseUrl }: Pick<Channel, 'base_url'>): {
    readonly source: string
    readonly ends: ReadonlyMap<string, ModelRetirement>
  } {
    const source = this.#tag(baseUrl)
    return { source, ends: this.#listed.get(source) ?? NO_ENDS }
  }

  /**
   * The shutdown dates for the models in these settings. Returns the same object until the settings or the
   * dates change.
   */
  of(settings: Settings): EndIndex {
    let index = this.#indexes.get(settings)
    if (!index) this.#indexes.set(settings, (index = this.#indexOf(settings)))
    return index
  }

  #indexOf({ options, channels }: Settings): EndIndex {
    if (!options.model_dates) return new EndIndex([])
    const tags = new Map<string, string>()
    const stated = new Map<string, ModelRetirement | undefined>()
    const endOf = (channel: Channel, name: string): ModelRetirement | undefined => {
      const { base_url: baseUrl } = channel
      if (!tags.has(baseUrl)) tags.set(baseUrl, this.#tag(baseUrl))
      const listed = this.#listed.get(tags.get(baseUrl) ?? '')?.get(name)
      if (listed) return listed
      const key = JSON.stringify([channel.provider, baseUrl, name])
      if (!stated.has(key)) stated.set(key, announcedRetirement(channel, name))
      return stated.get(key)
    }
    const ends = channels.flatMap((channel) =>
      channel.models.map((model) => ({
        model,
        channel,
        end: endOf(channel, channel.model_mapping.get(model) ?? model),
      })),
    )
    return new EndIndex(ends)
  }
}

const NO_ENDS: ReadonlyMap<string, ModelRetirement> = new Map()

/** A channel that serves a model, and when the model is shut down there. */
interface ServedEnd {
  readonly model: string
  readonly channel: Channel
  readonly end: ModelRetirement | undefined
}

/** A model with a shutdown date in at least one channel. */
interface IndexedModel {
  /** The latest shutdown date of the model in any channel; undefined if one of its channels has no date. */
  readonly ending: RetiringModel | undefined
  readonly channels: ReadonlyMap<Channel, number>
}

/** The shutdown dates of all models in a configuration. */
class EndIndex {
  readonly #models = new Map<string, IndexedModel>()

  constructor(served: readonly ServedEnd[]) {
    const ending = new Set(served.flatMap(({ model, end }) => (end ? [model] : [])))
    const byModel = Map.groupBy(
      served.filter(({ model }) => ending.has(model)),
      ({ model }) => model,
    )
    for (const [model, ofModel] of byModel) this.#models.set(model, indexed(model, ofModel))
  }

  /** Whether no model has a shutdown date in any channel. */
  get isEmpty(): boolean {
    return this.#models.size === 0
  }

  /** The models that will be shut down in all their channels, in the order of the configuration. */
  get ending(): readonly RetiringModel[] {
    return [...this.#models.values()].flatMap(({ ending }) => ending ?? [])
  }

  /**
   * The shutdown date of a model: the latest date in any of its channels. Undefined if one of its channels
   * has no date.
   */
  endOf(model: string): RetiringModel | undefined {
    return this.#find(model)?.ending
  }

  /** Whether the model has been shut down in this channel. */
  hasEnded(channel: Channel, model: string, nowMs: number): boolean {
    const at = this.#find(model)?.channels.get(channel)
    return at !== undefined && at <= nowMs
  }

  #find(model: string): IndexedModel | undefined {
    if (this.#models.size === 0) return undefined
    const own = this.#models.get(model)
    if (own) return own
    const plain = withoutThinkingSuffix(model)
    return plain === undefined ? undefined : this.#models.get(plain)
  }
}

function indexed(model: string, served: readonly ServedEnd[]): IndexedModel {
  const ends = served.flatMap(({ end }) => end ?? [])
  const channels = new Map(
    served.flatMap(({ channel, end }) => (end ? [[channel, retirementTimeMs(end)] as const] : [])),
  )
  const [latest] = ends.toSorted((a, b) => retirementTimeMs(b) - retirementTimeMs(a) || a.knownMs - b.knownMs)
  if (!latest || ends.length < served.length) return { ending: undefined, channels }
  return { ending: { model, end: latest, headers: headersOf(latest) }, channels }
}

/** The headers for a shutdown. By RFC 9745, 4, the deprecation must not be later than the sunset. */
function headersOf(end: ModelRetirement): EndHeaders {
  const atMs = retirementTimeMs(end)
  return {
    deprecation: `@${Math.floor(Math.min(end.knownMs, atMs) / 1000)}`,
    sunset: new Date(atMs).toUTCString(),
  }
}
