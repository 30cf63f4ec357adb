import type { KeptText } from '../../store/operations/stored-responses.ts'
import type { ResponseStore } from './response-store.ts'

/** A stored text with items, of one kept response. */
export interface ItemSource {
  /** Whether the text is a list of items, or a response with the items in `output`. */
  readonly of: 'array' | 'output'
  /** Reads one of its stored parts, numbered from 0; the last one read is cached. */
  readonly part: (index: number) => Promise<KeptText>
}

/** The input or the output of a kept response. */
export function itemSource(
  responses: ResponseStore,
  userId: number,
  id: string,
  of: 'input' | 'response',
): ItemSource {
  let latest = { index: -1, part: Promise.resolve<KeptText>({ text: '', isLast: true }) }
  return {
    of: of === 'input' ? 'array' : 'output',
    part: (index) => {
      if (index !== latest.index) latest = { index, part: responses.part(userId, id, of, index) }
      return latest.part
    },
  }
}
