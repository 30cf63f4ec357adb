import { withoutTrailing } from '../../../domain/without-trailing.ts'
import { parseBedrockKey } from '../../../domain/provider-keys.ts'
import { encodeSegment, signatureHeaders } from '../../../upstreams/signature-v4.ts'
import {
  type Judgement,
  requireList,
  memberOf,
  NO_MATCHES,
  ServiceFailure,
  type ServiceMaker,
} from './service.ts'

const SIDES = { request: 'INPUT', response: 'OUTPUT' } as const
/** Maximum depth to which assessments are searched for actions. */
const MAX_DEPTH = 8

/** Amazon Bedrock Guardrails, `ApplyGuardrail`. The keys are used in turn. */
export const bedrock: ServiceMaker<'bedrock'> = ({ base_url: base, region, guardrail, version, keys }) => {
  const { host, pathname } = new URL(base)
  const prefix = withoutTrailing(pathname, '/')
  const path = `${prefix}/guardrail/${encodeSegment(guardrail)}/version/${encodeSegment(version)}/apply`
  const url = `${new URL(base).origin}${path}`
  const credentials = keys.flatMap((key) => {
    const parsed = parseBedrockKey(key)
    return parsed && 'aws' in parsed ? [parsed.aws] : []
  })
  let turn = 0
  return {
    async judge({ texts, side }, { post }) {
      const key = credentials[turn++ % credentials.length]
      if (!key) throw new ServiceFailure('it has no key')
      const content = texts.map((text) => ({ text: { text } }))
      const body = Buffer.from(JSON.stringify({ source: SIDES[side], content }))
      const type = { 'content-type': 'application/json' }
      const signable = { method: 'POST', host, path, headers: type, body }
      const signed = signatureHeaders(signable, key, { service: 'bedrock', region }, new Date())
      const headers: Record<string, string> = {}
      for (let at = 0; at < signed.length; at += 2) headers[signed[at] ?? ''] = signed[at + 1] ?? ''
      return judgementOf(await post({ url, headers, body }), texts)
    },
  }
}

/**
 * Reads the answer of `ApplyGuardrail`. `GUARDRAIL_INTERVENED` may mean that texts were blocked or that parts
 * of them were masked; the actions of the assessments show which. If they do not, or if nothing is different, the texts
 * count as blocked.
 */
function judgementOf(answer: unknown, sent: readonly string[]): Judgement {
  const action = memberOf(answer, 'action')
  if (action === 'NONE') return NO_MATCHES
  if (action !== 'GUARDRAIL_INTERVENED') throw new ServiceFailure('it answered without a known action')
  const actions = new Map<string, number>()
  countActions(memberOf(answer, 'assessments'), actions, 0)
  const masked = actions.get('ANONYMIZED') ?? 0
  const blocked = actions.get('BLOCKED') ?? 0
  if (masked === 0 || blocked > 0) return { matches: Math.max(1, masked + blocked), isBlocked: true }
  const texts = requireList(memberOf(answer, 'outputs'), 'outputs').map((output) => {
    const text = memberOf(output, 'text')
    if (typeof text === 'string') return { text }
    throw new ServiceFailure('it answered with an output that has no text')
  })
  if (texts.length !== sent.length)
    throw new ServiceFailure(`it answered with ${texts.length} outputs to ${sent.length} texts`)
  const isSame = texts.every(({ text }, index) => text === sent[index])
  return isSame ? { matches: masked, isBlocked: true } : { matches: masked, isBlocked: false, texts }
}

function countActions(value: unknown, actions: Map<string, number>, depth: number): void {
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return
  for (const [name, part] of Object.entries(value)) {
    if (name === 'action' && typeof part === 'string') actions.set(part, (actions.get(part) ?? 0) + 1)
    else countActions(part, actions, depth + 1)
  }
}
