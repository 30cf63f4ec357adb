import type { BatchLine, LineHead } from './batch.ts'

/** Bytes of bodies that are in memory: results are mostly near each other. */
const MAX_BYTES = 4_194_304
/** Number of groups of heads that are in memory. */
const MAX_GROUPS = 64

/** A line without its model, which is needed only to plan where it is sent. */
export type FoundLine = Omit<BatchLine, 'model'>

/** Where the bodies of lines are. All parts but the last have `partBytes` bytes; undefined is one that is missing or damaged. */
export interface StoredBodies {
  readonly partBytes: number
  readonly part: (part: number) => Promise<Buffer | undefined>
  /** The same, which tries several times. */
  readonly partAgain: (part: number) => Promise<Buffer | undefined>
}

/** Reads what a `LineFinder` finds. */
export interface LineSource {
  /** All heads, in groups of consecutive lines. */
  readonly groups: () => AsyncIterable<readonly LineHead[]>
  /** The group whose first line has this number. */
  readonly group: (first: number) => Promise<readonly LineHead[]>
  /** Resolves to undefined if nothing is kept of the bodies. */
  readonly bodies: () => Promise<StoredBodies | undefined>
}

/** Finds the lines of a batch by their numbers, in any order, without having all of them in memory. */
export class LineFinder {
  readonly #source: LineSource
  readonly #parts = new Map<number, Buffer>()
  readonly #groups = new Map<number, Promise<readonly LineHead[]>>()
  /** Numbers of the first lines of all groups; undefined until they were read once. */
  #firsts: Promise<readonly number[]> | undefined
  #bodies: Promise<StoredBodies | undefined> | undefined
  #isDamaged = false

  constructor(source: LineSource) {
    this.#source = source
  }

  /** What is known of a line without its body. */
  async head(number: number): Promise<LineHead | undefined> {
    const firsts = await once(
      () => (this.#firsts ??= this.#readFirsts()),
      () => (this.#firsts = undefined),
    )
    const after = firsts.findIndex((first) => first > number)
    const first = firsts.at(after < 0 ? -1 : after - 1)
    if (first === undefined || first > number) return undefined
    return (await this.#group(first))[number - first]
  }

  /** The body of a line; undefined if it is lost. */
  async body({ at, bytes }: Pick<LineHead, 'at' | 'bytes'>): Promise<Buffer | undefined> {
    const bodies = await once(
      () => (this.#bodies ??= this.#source.bodies()),
      () => (this.#bodies = undefined),
    )
    const found: Buffer[] = []
    for (let from = at, missing = bytes; missing > 0; ) {
      const part = bodies && (await this.#part(bodies, Math.floor(from / bodies.partBytes)))
      const begin = bodies ? from % bodies.partBytes : 0
      const piece = part?.subarray(begin, begin + missing)
      if (!piece || piece.length === 0) {
        // Further missing parts are read only once.
        this.#isDamaged = true
        return undefined
      }
      found.push(piece)
      from += piece.length
      missing -= piece.length
    }
    return Buffer.concat(found)
  }

  async #readFirsts(): Promise<readonly number[]> {
    const firsts: number[] = []
    for await (const [head] of this.#source.groups()) if (head) firsts.push(head.number)
    return firsts
  }

  async #group(first: number): Promise<readonly LineHead[]> {
    const [oldest] = this.#groups.keys()
    return once(
      () => {
        const known = this.#groups.get(first)
        if (known) return known
        if (this.#groups.size === MAX_GROUPS && oldest !== undefined) this.#groups.delete(oldest)
        const read = this.#source.group(first)
        this.#groups.set(first, read)
        return read
      },
      () => this.#groups.delete(first),
    )
  }

  async #part(
    { partBytes, part: read, partAgain }: StoredBodies,
    index: number,
  ): Promise<Buffer | undefined> {
    const known = this.#parts.get(index)
    if (known) return known
    const part = await (this.#isDamaged ? read : partAgain)(index)
    if (!part) return undefined
    const [oldest] = this.#parts.keys()
    if ((this.#parts.size + 1) * partBytes > MAX_BYTES && oldest !== undefined) this.#parts.delete(oldest)
    this.#parts.set(index, part)
    return part
  }
}

/** Reads a value that the caller keeps in memory. After an error, the caller forgets it, so that it is read again. */
async function once<Value>(read: () => Promise<Value>, forget: () => void): Promise<Value> {
  try {
    return await read()
  } catch (error) {
    forget()
    throw error
  }
}
