import {
  requireList,
  memberOf,
  type PlacedMatch,
  type Service,
  ServiceFailure,
  type ServiceMaker,
} from './service.ts'

/** Number of texts of one check that are analyzed at the same time. */
const AT_A_TIME = 8

/** Checks texts with Microsoft Presidio's analyzer: one request for each text. */
export const presidio: ServiceMaker<'presidio'> = ({ url, language, score, entities }): Service => ({
  async judge({ texts }, { post }) {
    const found = new Map<string, readonly PlacedMatch[]>()
    const different = [...new Set(texts)]
    const analyze = async (text: string): Promise<void> => {
      const question = { text, language, score_threshold: score, ...(entities.length > 0 && { entities }) }
      const body = Buffer.from(JSON.stringify(question))
      found.set(text, spansOf(await post({ url: `${url}/analyze`, headers: {}, body }), text, score))
    }
    for (let at = 0; at < different.length; at += AT_A_TIME)
      await Promise.all(different.slice(at, at + AT_A_TIME).map(analyze))
    const judged = texts.map((text) => ({ spans: found.get(text) ?? [] }))
    const matches = judged.reduce((sum, { spans }) => sum + spans.length, 0)
    return { matches, isBlocked: false, texts: judged }
  },
})

/**
 * Reads the matches in an answer, in order. Presidio's positions count code points, because it is written in
 * Python.
 */
function spansOf(answer: unknown, text: string, score: number): readonly PlacedMatch[] {
  const units = offsetsOf(text)
  return requireList(answer, 'a list of matches')
    .flatMap((one): PlacedMatch[] => {
      const [from, to] = [memberOf(one, 'start'), memberOf(one, 'end')]
      const kind = memberOf(one, 'entity_type')
      const start = units(from)
      const end = units(to)
      if (start === undefined || end === undefined || start >= end || typeof kind !== 'string')
        throw new ServiceFailure('it answered with a match that is none of the text')
      const given = memberOf(one, 'score')
      // Some analyzers ignore the threshold in the request, so matches below it are dropped here.
      return typeof given === 'number' && given < score ? [] : [{ start, end, kind }]
    })
    .toSorted((a, b) => a.start - b.start || b.end - a.end)
}

/** Converts positions in code points to positions in code units. */
function offsetsOf(text: string): (position: unknown) => number | undefined {
  const isBasic = !/[\u{10000}-\u{10ffff}]/u.test(text)
  const units: number[] = []
  if (!isBasic) {
    let at = 0
    for (const character of text) {
      units.push(at)
      at += character.length
    }
    units.push(at)
  }
  return (position) => {
    if (typeof position !== 'number' || !Number.isSafeInteger(position) || position < 0) return undefined
    if (isBasic) return position <= text.length ? position : undefined
    return units[position]
  }
}
