import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { addHistogram, emptyHistogram, serializeHistogram } from '../../domain/latency.ts'
import { type SettledCall, USAGE, type UsageLogRow } from '../../domain/records/usage.ts'
import {
  addCallToHistograms,
  addCallToSums,
  addCauseToSums,
  dimensionValuesOfCall,
  hasRouteColumns,
  HISTOGRAMS,
  NO_DIMENSION,
  SLOT_MS,
  SLOTS_PER_DAY,
  SUM_COLUMNS,
  SUM_KINDS,
  type SummedCall,
  USAGE_SUMS_KEY,
} from '../sum-kinds.ts'
import { usageFromRow } from '../usage-row.ts'

/** Number of gathered rows that one `sumUp` adds to the sums, so that it takes about 2 ms. */
const PART_ROWS = 100

/** How far `GatheredSums.sumUp` has added calls to the sums of usage. */
export interface SumProgress {
  /** Number of the generation that was to be added to the sums. */
  readonly through: number
  /** Whether calls of this or earlier generations still have to be added. */
  readonly isBehind: boolean
}

/** Counts by bucket, in the order of `HISTOGRAMS`. */
type Histograms = readonly [total: number[], first: number[]]

/** What the calls of one half hour with equal dimensions add to the sums. */
interface GatheredRow {
  /** Text by which rows are distinguished and sorted. */
  readonly name: string
  readonly slot: number
  /** The dimensions, in the form of `NO_DIMENSION`; without user and key if `histograms` is present. */
  readonly values: Readonly<Record<keyof typeof NO_DIMENSION, string | number>>
  /** Sums in the order of `SUM_COLUMNS`. */
  readonly sums: number[]
  /** Present in rows without user and key, which alone have causes and latencies. */
  readonly histograms: Histograms | undefined
}

/** Calls that were gathered since the previous set was complete. */
class GatheredCalls {
  readonly rows = new Map<string, GatheredRow>()
  count = 0
  /** The earliest end of these calls, in Unix milliseconds. */
  oldestMs = Number.POSITIVE_INFINITY

  add(call: SummedCall & Parameters<typeof dimensionsOf>[0]): void {
    const slot = Math.floor(call.ended_ms / SLOT_MS)
    const values = dimensionsOf(call)
    // NUL can separate the parts, because no text contains it. Rows of equal routes are neighbours.
    const route = `${slot}\0${values.model}\0${values.channel}\0${values.group_name}\0${values.service_tier}\0${values.region}\0`
    const byRoute = this.#row(route, slot, values, true)
    const byKey = this.#row(route + values.token_id, slot, values, false)
    addCallToSums(byKey.sums, call)
    addCallToSums(byRoute.sums, call)
    addCauseToSums(byRoute.sums, call)
    if (byRoute.histograms) addCallToHistograms(byRoute.histograms, call)
    this.count += 1
    if (call.ended_ms < this.oldestMs) this.oldestMs = call.ended_ms
  }

  #row(name: string, slot: number, values: GatheredRow['values'], isRoute: boolean): GatheredRow {
    let row = this.rows.get(name)
    if (!row) {
      row = {
        name,
        slot,
        values: isRoute
          ? { ...values, user_id: NO_DIMENSION.user_id, token_id: NO_DIMENSION.token_id }
          : values,
        sums: SUM_COLUMNS.map(() => 0),
        histograms: isRoute ? [emptyHistogram(), emptyHistogram()] : undefined,
      }
      this.rows.set(name, row)
    }
    return row
  }
}

function dimensionsOf({
  user_id,
  token_id,
  model,
  channel,
  group,
  service_tier = '',
  region = '',
}: Pick<
  SettledCall,
  'user_id' | 'token_id' | 'model' | 'channel' | 'group' | 'service_tier' | 'region' | 'ended_ms'
>) {
  return { user_id, token_id, model, channel, group_name: group, service_tier, region }
}

/** A set of calls that is being added to the sums. */
interface Writing {
  readonly generation: number
  /** The calls are listed in the rows of `unsummed_calls` up to this one. */
  readonly place: number
  readonly rows: readonly GatheredRow[]
  readonly calls: Pick<GatheredCalls, 'count' | 'oldestMs'>
  /** Number of rows that are in the sums. */
  done: number
}

/**
 * Gathers settled calls in memory, by half hours and dimensions, and adds them to the sums of usage in later
 * transactions. The file says which calls are not in the sums: the transaction that settles calls lists their
 * ids in a row of `unsummed_calls`. Gathered calls are added in parts; the transaction of each part moves
 * `sums_watermark`, and that of the last part removes the list. So in every state of the file, the calls that
 * are not in the sums can be gathered again from their rows in the usage log. This happens at a start, and
 * after a transaction that was rolled back.
 */
export class GatheredSums {
  readonly #rows: SummedRows
  readonly #statements: ReturnType<typeof prepareStatements>
  /** Whether all listed calls are in memory. Otherwise `#load` gathers them. */
  #isLoaded: boolean
  #open = new GatheredCalls()
  #writing: Writing | undefined
  /** Ids of the calls that the open transaction settles and that are not listed yet. */
  #answered: string[] = []
  #unanswered: string[] = []
  /** Number of the set that is gathered now, and of the last one that is in the sums. */
  #generation = 1
  #done = 0
  #committed = 0
  /** Number of calls that are not in the sums while they are not in memory. */
  #unloaded: number

  constructor(db: DatabaseSync) {
    db.function('add_histograms', { deterministic: true }, (one, other) =>
      addedHistograms(String(one), String(other)),
    )
    this.#rows = new SummedRows(db)
    this.#statements = prepareStatements(db)
    this.#unloaded = Number(this.#statements.count.get()?.['calls'] ?? 0)
    this.#isLoaded = this.#unloaded === 0
  }

  /** Number of calls that are not in the sums yet; after a rollback an estimate, but 0 only if there are none. */
  get waiting(): number {
    return this.#isLoaded ? this.#open.count + (this.#writing?.calls.count ?? 0) : this.#unloaded
  }

  /** Whether a set of calls is in the sums partly. */
  get isWriting(): boolean {
    return this.#writing !== undefined
  }

  /** Adds a call that the open transaction settles. */
  add(call: SettledCall): void {
    if (call.delivered) this.#answered.push(call.id)
    else this.#unanswered.push(call.id)
    if (this.#isLoaded) this.#open.add(call)
    else this.#unloaded += 1
  }

  /** Lists the calls that `add` was given as not in the sums. Call it before the transaction ends. */
  list(): void {
    if (this.#answered.length + this.#unanswered.length === 0) return
    this.#statements.list.run(JSON.stringify(this.#answered), JSON.stringify(this.#unanswered))
    this.#answered = []
    this.#unanswered = []
  }

  /** Call it after the transaction was committed. */
  commit(): void {
    this.#committed = this.#done
  }

  /** Discards everything in memory, because the transaction was rolled back. */
  discard(): void {
    // One is added, because a removed list may be present again.
    this.#unloaded = this.waiting + 1
    this.#isLoaded = false
    this.#open = new GatheredCalls()
    this.#writing = undefined
    this.#answered = []
    this.#unanswered = []
    this.#done = this.#committed
  }

  /**
   * The earliest end of the calls that are not in the sums, in Unix milliseconds; infinite if there are none.
   * Rows of the usage log from then on are still needed. Call it after `list`.
   */
  neededFromMs(): number {
    this.#load()
    return Math.min(this.#open.oldestMs, this.#writing?.calls.oldestMs ?? Number.POSITIVE_INFINITY)
  }

  /**
   * Adds some of the gathered calls to the sums, those first that were settled first. It takes so little time
   * that calls can wait for it. Call it after `list`. `through` is the generation that the caller needs in the
   * sums; by default all calls so far.
   */
  sumUp(through = this.#generation): SumProgress {
    this.#load()
    if (!this.#writing && this.#open.count > 0) this.#close()
    if (this.#writing) this.#writePart(this.#writing)
    if (!this.#writing && this.#open.count === 0) {
      this.#done = this.#generation
      this.#generation += 1
    }
    return { through, isBehind: this.#done < through }
  }

  // Begins to write what was gathered. Calls that are settled from now on are gathered for the next time.
  #close(): void {
    const place = Number(this.#statements.last.get()?.['place'])
    this.#writing = {
      generation: this.#generation,
      place,
      rows: sorted(this.#open),
      calls: this.#open,
      done: 0,
    }
    this.#generation += 1
    this.#open = new GatheredCalls()
  }

  #writePart(writing: Writing): void {
    const done = Math.min(writing.rows.length, writing.done + PART_ROWS)
    try {
      for (const row of writing.rows.slice(writing.done, done)) this.#addToKinds(row)
      this.#rows.write()
    } finally {
      this.#rows.discard()
    }
    if (done < writing.rows.length) {
      this.#statements.mark.run(writing.place, done)
      writing.done = done
      return
    }
    this.#statements.unlist.run(writing.place)
    this.#statements.unmark.run()
    this.#done = Math.max(this.#done, writing.generation)
    this.#writing = undefined
  }

  #addToKinds({ slot, values, sums, histograms }: GatheredRow): void {
    for (const kind of SUM_KINDS) {
      if (hasRouteColumns(kind) !== (histograms !== undefined)) continue
      const start = kind.unit === 'slot' ? slot : Math.floor(slot / SLOTS_PER_DAY)
      this.#rows.add([kind.kind, start, ...dimensionValuesOfCall(kind, values)], sums, histograms)
    }
  }

  #load(): void {
    if (this.#isLoaded) return
    const mark = this.#statements.watermark.get() as
      | { readonly place: number; readonly done: number }
      | undefined
    const open = new GatheredCalls()
    const marked = new GatheredCalls()
    for (const row of this.#statements.listed.iterate() as Iterable<unknown> as Iterable<ListedRow>) {
      const call = { ...USAGE.fromRow(row), usage: usageFromRow(row), delivered: row.listed_delivered === 1 }
      if (mark && row.listed_place <= mark.place) marked.add(call)
      else open.add(call)
    }
    this.#open = open
    // The calls of the generations before may be in the next set, so `#done` stays until that is complete.
    this.#writing = mark && { generation: this.#done, ...mark, rows: sorted(marked), calls: marked }
    this.#isLoaded = true
  }
}

/** A row of the usage log that is listed in `unsummed_calls`. */
type ListedRow = UsageLogRow & { readonly listed_place: number; readonly listed_delivered: number }

const sorted = ({ rows }: GatheredCalls): GatheredRow[] =>
  [...rows.values()].sort((one, other) => (one.name < other.name ? -1 : 1))

function addedHistograms(one: string, other: string): string {
  const counts = emptyHistogram()
  addHistogram(counts, one)
  addHistogram(counts, other)
  return serializeHistogram(counts)
}

function prepareStatements(db: DatabaseSync) {
  const listed = (column: string, delivered: number): string =>
    `SELECT unsummed_calls.rowid AS listed_place, ${delivered} AS listed_delivered, value AS listed_id
     FROM unsummed_calls, json_each(${column})`
  return {
    list: db.prepare('INSERT INTO unsummed_calls (answered, unanswered) VALUES (?, ?)'),
    count: db.prepare(
      'SELECT coalesce(sum(json_array_length(answered) + json_array_length(unanswered)), 0) AS calls FROM unsummed_calls',
    ),
    last: db.prepare('SELECT coalesce(max(rowid), 0) AS place FROM unsummed_calls'),
    // A cross join is read in the written order.
    listed: db.prepare(
      `SELECT listed.*, usage_log.* FROM (${listed('answered', 1)} UNION ALL ${listed('unanswered', 0)}) AS listed
       CROSS JOIN usage_log ON usage_log.id = listed_id`,
    ),
    unlist: db.prepare('DELETE FROM unsummed_calls WHERE rowid <= CAST(? AS INTEGER)'),
    watermark: db.prepare('SELECT place, done FROM sums_watermark'),
    mark: db.prepare(
      `INSERT INTO sums_watermark (id, place, done) VALUES (1, ${AS_INTEGER}, ${AS_INTEGER})
       ON CONFLICT (id) DO UPDATE SET place = excluded.place, done = excluded.done`,
    ),
    unmark: db.prepare('DELETE FROM sums_watermark'),
  }
}

/** A row of sums: the values of its key, its sums, and its histograms in kinds that have them. */
interface SummedRow {
  readonly key: readonly (number | string)[]
  readonly sums: number[]
  readonly histograms: Histograms | undefined
}

/**
 * The statements that add amounts to some columns of a row: `update` for an existing row, `insert` for a new
 * one.
 */
interface Addition {
  readonly update: StatementSync
  readonly insert: StatementSync
  readonly columns: readonly number[]
}

/**
 * Number of columns that are updated together. Many amounts are 0, so only the blocks with other amounts are
 * updated. Choosing single columns would need too many different statements.
 */
const BLOCK = 4
/** Maximum number of cached statements. There is one for each combination of blocks. */
const MAX_STATEMENTS = 100

/** Adds up amounts for the rows of `usage_sums`, so that `write` writes each row only once. */
class SummedRows {
  readonly #db: DatabaseSync
  readonly #rows = new Map<string, SummedRow>()
  /** The statements of each combination of blocks, by a bit mask of the blocks that they update. */
  readonly #additions = new Map<number, Addition>()

  constructor(db: DatabaseSync) {
    this.#db = db
  }

  /** Adds amounts to the row with this key. */
  add(key: SummedRow['key'], sums: readonly number[], histograms: Histograms | undefined): void {
    // NUL can separate the parts, because no text contains it.
    const name = key.join('\0')
    const row = this.#rows.get(name)
    if (!row) {
      const copied: Histograms | undefined = histograms && [[...histograms[0]], [...histograms[1]]]
      this.#rows.set(name, { key, sums: [...sums], histograms: copied })
      return
    }
    addAll(row.sums, sums)
    if (row.histograms && histograms)
      for (const [index, counts] of histograms.entries()) addAll(row.histograms[index]!, counts)
  }

  /**
   * Writes the amounts that were added up. Uses an update first, because most rows exist, and an upsert would
   * build a new row each time.
   */
  write(): void {
    for (const { key, sums, histograms } of this.#rows.values()) {
      const { update, insert, columns } = this.#additionOf(sums, histograms !== undefined)
      const texts = histograms?.map(serializeHistogram) ?? []
      const values = [...columns.map((column) => sums[column]!), ...texts, ...key]
      if (update.run(...values).changes === 0) insert.run(...values)
    }
    this.#rows.clear()
  }

  /** Discards the amounts that were added up in memory. */
  discard(): void {
    this.#rows.clear()
  }

  #additionOf(sums: readonly number[], hasHistograms: boolean): Addition {
    // The first block is always included, because a statement needs at least one column.
    let blocks = 1
    for (let i = BLOCK; i < sums.length; i += 1) if (sums[i] !== 0) blocks |= 1 << (i / BLOCK)
    const kind = hasHistograms ? -blocks : blocks
    let addition = this.#additions.get(kind)
    if (!addition) {
      if (this.#additions.size >= MAX_STATEMENTS) this.#additions.clear()
      this.#additions.set(kind, (addition = this.#prepare(blocks, hasHistograms ? HISTOGRAMS : [])))
    }
    return addition
  }

  #prepare(blocks: number, texts: readonly string[]): Addition {
    const columns = [...SUM_COLUMNS.keys()].filter((index) => (blocks & (1 << (index / BLOCK))) !== 0)
    const names = columns.map((index) => SUM_COLUMNS[index]!)
    const changes = [
      ...names.map((name) => `${name} = ${name} + ${AS_INTEGER}`),
      ...texts.map((name) => `${name} = add_histograms(${name}, ?)`),
    ]
    const wanted = USAGE_SUMS_KEY.map((name) => `${name} = ?`)
    const values = [...names.map(() => AS_INTEGER), ...texts.map(() => '?'), ...USAGE_SUMS_KEY.map(() => '?')]
    return {
      update: this.#db.prepare(`UPDATE usage_sums SET ${changes.join(', ')} WHERE ${wanted.join(' AND ')}`),
      insert: this.#db.prepare(
        `INSERT INTO usage_sums (${[...names, ...texts, ...USAGE_SUMS_KEY].join(', ')}) VALUES (${values.join(', ')})`,
      ),
      columns,
    }
  }
}

function addAll(sums: number[], values: readonly number[]): void {
  for (let i = 0; i < values.length; i += 1) sums[i]! += values[i]!
}

// The driver binds every number as a double, so amounts are cast to integers.
const AS_INTEGER = 'CAST(? AS INTEGER)'
