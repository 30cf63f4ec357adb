import type { KeptText } from '../../store/operations/stored-responses.ts'
import type { ResponseStore } from './response-store.ts'

/** A text with items, of one kept response. */
export interface ItemSource {
  /** Whether it is a list of items, or a response that has them as its `output`. */
  readonly of: 'array' | 'output'
  /** Reads one of the parts that it is stored in, from 0; the latest is remembered. */
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
