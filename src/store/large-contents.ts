import type { StoredContent, StoredResponse } from '../domain/stored-response.ts'
import type { StoredBytesOfUser } from './operations/signatures-and-response-parts.ts'
import type { RowStore } from './store.ts'

/**
 * Maximum length of a text stored by one write, in UTF-16 code units. It is small, because charges of calls
 * wait for the same commit.
 */
const PART_LENGTH = 262_144
/** Number of parts of a stored content that one write removes. */
const REMOVED_AT_A_TIME = 8

/** A stored response with content. */
type ResponseWithContent = StoredResponse & { readonly content: StoredContent }

/** Whether the content of a response must be stored in parts. */
export function isLargeContent({ input, response }: StoredContent): boolean {
  return input.length + response.length > PART_LENGTH
}

/** Stores large contents, one part at a time, so that little is written between the charges of calls. */
export class LargeContents {
  readonly #rows: Pick<RowStore, 'write'>
  #turn: Promise<unknown> = Promise.resolve()

  constructor(rows: Pick<RowStore, 'write'>) {
    this.#rows = rows
  }

  /**
   * Stores the content in parts, and then the row of the response. Resolves to the result of `storeResponse`.
   */
  async store({ content, ...response }: ResponseWithContent): Promise<StoredBytesOfUser | undefined> {
    const input = partsOf(content.input)
    const parts = [...input, ...partsOf(content.response)]
    for (const [part, text] of parts.entries())
      await this.#inTurn(() =>
        this.#rows.write('storeResponsePart', {
          responseId: response.id,
          part,
          text,
          createdMs: Date.now(),
        }),
      )
    const sum = await this.#rows.write('storeResponse', {
      ...response,
      content: {
        inputParts: input.length,
        responseParts: parts.length - input.length,
        bytes: Buffer.byteLength(content.input) + Buffer.byteLength(content.response),
      },
    })
    // The user of the response was deleted meanwhile, so its row was not stored.
    if (!sum) await removeResponseParts(this.#rows, response.id)
    return sum
  }

  #inTurn(write: () => Promise<void>): Promise<void> {
    const written = this.#turn.then(write)
    this.#turn = written.catch(() => {})
    return written
  }
}

/**
 * Removes the parts of a response whose row no longer exists, a few per write. Resolves to the number of
 * removed parts.
 */
export async function removeResponseParts(
  rows: Pick<RowStore, 'write'>,
  responseId: string,
): Promise<number> {
  for (let removed = 0; ; ) {
    const count = await rows.write('removeOrphanedParts', { responseId, limit: REMOVED_AT_A_TIME })
    removed += count
    if (count < REMOVED_AT_A_TIME) return removed
  }
}

/** Splits a text into parts. Surrogate pairs are not split, because each part is encoded separately. */
function partsOf(text: string): string[] {
  const parts: string[] = []
  for (let start = 0; start < text.length; ) {
    const end = start + PART_LENGTH
    const cutsPair = end < text.length && (text.codePointAt(end - 1) ?? 0) > 0xffff
    parts.push(text.slice(start, cutsPair ? end - 1 : end))
    start = cutsPair ? end - 1 : end
  }
  return parts
}
