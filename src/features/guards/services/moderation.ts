import { requireList, memberOf, ServiceFailure, type ServiceMaker } from './service.ts'

/** Checks texts with a moderation model that the gateway itself serves. */
export const moderation: ServiceMaker<'moderation'> = ({ model, thresholds }) => {
  const limits = Object.entries(thresholds)
  return {
    async judge({ texts }, { moderate }) {
      const results = requireList(memberOf(await moderate(model, texts), 'results'), 'results')
      if (results.length !== texts.length)
        throw new ServiceFailure(`it answered with ${results.length} results to ${texts.length} texts`)
      const matches = results.filter((result) => {
        if (limits.length === 0) return flagOf(result)
        const scores = memberOf(result, 'category_scores')
        return limits.map(([category, least]) => scoreOf(scores, category) >= least).includes(true)
      }).length
      return { matches, isBlocked: false }
    },
  }
}

function flagOf(result: unknown): boolean {
  const flagged = memberOf(result, 'flagged')
  if (typeof flagged === 'boolean') return flagged
  throw new ServiceFailure('it answered with a result without flagged')
}

// Throws for a category that the model does not know, because such a guard would never match.
function scoreOf(scores: unknown, category: string): number {
  const score = memberOf(scores, category)
  if (typeof score === 'number') return score
  throw new ServiceFailure(`it answered without a score for ${JSON.stringify(category)}`)
}
