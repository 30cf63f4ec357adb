import { memberOf, NO_MATCHES, ServiceFailure, type ServiceMaker } from './service.ts'

const ROLES = { request: 'user', response: 'assistant' } as const

/** Checks texts with Lakera Guard. */
export const lakera: ServiceMaker<'lakera'> = ({ base_url: base, key, project_id: project }) => ({
  async judge({ texts, side }, { post }) {
    const messages = texts.map((content) => ({ role: ROLES[side], content }))
    const question = { messages, ...(project !== undefined && { project_id: project }) }
    const body = Buffer.from(JSON.stringify(question))
    const flagged = memberOf(
      await post({ url: `${base}/v2/guard`, headers: { authorization: `Bearer ${key}` }, body }),
      'flagged',
    )
    if (typeof flagged !== 'boolean') throw new ServiceFailure('it answered without flagged')
    return flagged ? { matches: 1, isBlocked: false } : NO_MATCHES
  },
})
