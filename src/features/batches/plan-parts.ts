import { setImmediate } from 'node:timers/promises'
import type { Caller } from '../../accounts/authentication/caller.ts'
import type { ComposedCall } from '../../call/later-calls.ts'
import type { ChannelPlan, Plan } from '../../call/request-stages.ts'
import type { Settings } from '../../domain/settings.ts'
import { BatchPart, lineId, type PartFacts, partKey } from './batch-part.ts'
import type { BatchRun } from './batch-run.ts'
import type { BatchStore } from './batch-store.ts'
import type { LineHead } from './batch.ts'
import { type ComposingServices, composeLine } from './compose-lines.ts'
import type { LineAnswer } from './line-call.ts'
import type { FoundLine } from './line-finder.ts'
import { apiOf, pathOfLine } from './providers/apis.ts'

/** Lines whose states for guards are stored in one write. */
const STATES_AT_A_TIME = 100

/** Milliseconds of work after which other requests have a turn. */
const TURN_MS = 5

/** The work on a batch, as planning needs it. */
export interface PlanningWork {
  readonly services: ComposingServices & { readonly store: BatchStore }
  readonly run: BatchRun
  readonly caller: Caller
  /** The batches at providers so far; what is planned is added. */
  readonly parts: BatchPart[]
  /** Numbers of the lines that have ended. */
  readonly ended: ReadonlySet<number>
  /** The settings with the channels alone that can batch. */
  readonly settings: () => Settings
  /** The order in which the channels of a model are tried. */
  readonly orders: Map<string, readonly string[]>
  /** Whether nothing more is to be planned. */
  readonly isOver: () => boolean
  /** Ends a line that goes to no provider. */
  readonly refuse: (line: FoundLine, error: LineAnswer | undefined) => Promise<void>
  /** Ends a line whose body is lost. */
  readonly endLost: (line: LineHead) => Promise<void>
}

/** Plans batches at providers for all lines that are in none. */
export async function planParts(work: PlanningWork): Promise<void> {
  for (const [model, lines] of await unplannedLines(work))
    while (lines.size > 0) {
      if (work.isOver()) return
      await new PlannedPart(work, model).plan(lines)
    }
}

/** Numbers of the lines that are in no batch of a provider, by model. */
async function unplannedLines({
  services,
  run,
  parts,
  ended,
}: PlanningWork): Promise<Map<string, Set<number>>> {
  const byModel = new Map<string, Set<number>>()
  const live = parts.filter(({ facts }) => facts.state !== 'refused')
  for await (const { number, model } of services.store.inputHeads(run.batch)) {
    if (model === undefined || ended.has(number) || live.some((part) => part.has(number))) continue
    const lines = byModel.get(model)
    if (lines) lines.add(number)
    else byModel.set(model, new Set([number]))
  }
  return byModel
}

/** Names of the channels that have refused a line. */
function refusersOf({ parts }: PlanningWork, line: number): readonly string[] {
  return parts
    .filter((part) => part.facts.state === 'refused' && part.has(line))
    .map(({ facts }) => facts.channel.name)
}

/** A batch of lines of a model that is being planned: for one channel, as large as its provider takes it. */
class PlannedPart {
  readonly #work: PlanningWork
  readonly #model: string
  readonly #key: string
  readonly #numbers: number[] = []
  #facts: Pick<PartFacts, 'channel' | 'refusedBy' | 'path' | 'upstreamModel'> | undefined
  #call: ComposedCall | undefined
  #states: [number, string][] = []
  #hasStates = false
  #bytes = 0

  constructor(work: PlanningWork, model: string) {
    this.#work = work
    this.#model = model
    this.#key = partKey(work.run.batch.id, work.parts.length + 1)
  }

  /** Takes as many of the lines as fit. What is taken, or has ended, is removed from `lines`. */
  async plan(lines: Set<number>): Promise<void> {
    const { services, run, parts, isOver } = this.#work
    const { store } = services
    await store.storePartLines(run.batch, this.#key, this.#take(lines))
    if (isOver()) return
    await this.#storeStates()
    const [facts, call] = [this.#facts, this.#call]
    if (!facts || !call) {
      await store.removePartLines(run.batch, this.#key)
      return
    }
    const { channel } = facts
    const { keys } = channel
    const part = new BatchPart(this.#key, {
      ...facts,
      state: 'planned',
      key: keys[(parts.length + run.batch.createdMs) % Math.max(1, keys.length)] ?? '',
      group: call.plan.group.name,
      requested: this.#model,
      protocol: call.request.protocol,
      headers: headersOfBatch(call.request.headers),
      lines: Uint32Array.from(this.#numbers),
      hasStates: this.#hasStates,
      intentMs: Date.now(),
      round: 0,
    })
    await store.savePart(run.batch, part)
    parts.push(part)
  }

  /** The bytes of the lines that fit. */
  async *#take(lines: Set<number>): AsyncGenerator<Buffer, void, undefined> {
    const { run, isOver, endLost } = this.#work
    let turnAt = performance.now()
    for (const number of lines) {
      if (performance.now() - turnAt > TURN_MS) {
        await setImmediate()
        turnAt = performance.now()
      }
      if (isOver()) return
      const line = await run.lines.head(number)
      const body = line && (await run.bodyOf(line))
      if (line && !body) await endLost(line)
      const written = line && body && (await this.#written({ ...line, body }))
      if (written === 'later') continue
      if (written === 'full') return
      lines.delete(number)
      if (written) yield written
    }
  }

  /** The bytes of a line; `later` if it belongs to another batch, `full` if there is no room, undefined if it has ended. */
  async #written(line: FoundLine): Promise<Buffer | 'later' | 'full' | undefined> {
    const { services, run, caller, settings, refuse } = this.#work
    const { number } = line
    const refusers = refusersOf(this.#work, number)
    let isOfOther = false
    const choose = (plan: Plan): ChannelPlan | undefined => {
      const fitting = this.#inOrder(plan).filter(({ channel }) => !refusers.includes(channel.name))
      const own = this.#facts?.channel.name
      const chosen = own === undefined ? fitting[0] : fitting.find(({ channel }) => channel.name === own)
      isOfOther = fitting.length > 0 && !chosen
      return chosen
    }
    const { batch, hold } = run
    const made = await composeLine(services, { batch, caller, settings: settings(), hold }, line, choose)
    if ('error' in made) {
      if (isOfOther) return 'later'
      await refuse(line, made.error)
      return undefined
    }
    const { call, body } = made
    const { channel, request } = call
    const { protocol, upstreamModel } = request
    const path = pathOfLine(request.path)
    const api = apiOf(channel, { protocol, path })
    if (!api) {
      await refuse(line, undefined)
      return undefined
    }
    this.#facts ??= { channel, path, upstreamModel, refusedBy: refusers }
    this.#call ??= call
    const { refusedBy, ...own } = this.#facts
    // Lines of other requests, or that other channels have refused, are another batch.
    if (path !== own.path || upstreamModel !== own.upstreamModel || String(refusers) !== String(refusedBy))
      return 'later'
    const written = api.written(channel, lineId(this.#key, number), path, body)
    const count = this.#numbers.length
    if (count > 0 && (count === api.maxLines || this.#bytes + written.length > api.maxBytes)) return 'full'
    this.#numbers.push(number)
    this.#bytes += written.length
    if (call.suspended !== undefined) this.#states.push([number, call.suspended])
    if (this.#states.length === STATES_AT_A_TIME) await this.#storeStates()
    return written
  }

  async #storeStates(): Promise<void> {
    const { services, run } = this.#work
    const states = this.#states
    this.#states = []
    this.#hasStates ||= states.length > 0
    await services.store.storeLineStates(run.batch, states)
  }

  /** The channels of a plan in the order that holds for all lines of the model, so that few batches are made. */
  #inOrder({ channels }: Plan): readonly ChannelPlan[] {
    const { orders } = this.#work
    const order = orders.get(this.#model) ?? channels.map(({ channel }) => channel.name)
    orders.set(this.#model, order)
    const place = ({ channel }: ChannelPlan): number => {
      const at = order.indexOf(channel.name)
      return (channel.isDrained ? order.length : 0) + (at < 0 ? order.length : at)
    }
    return channels.toSorted((a, b) => place(a) - place(b))
  }
}

/** The headers of a line that hold for its batch, such as the version of the API. */
function headersOfBatch(headers: readonly string[]): readonly string[] {
  return headers.flatMap((name, at) =>
    at % 2 === 0 && name.startsWith('anthropic-') ? [name, headers[at + 1] ?? ''] : [],
  )
}
