import { describe, expect, test } from 'vitest'
import type { ServiceMatch } from '../../../domain/guard.ts'
import { applyJudgement, changedRange } from './apply-judgement.ts'
import { type Judgement, type PostRequest, ServiceFailure } from './service.ts'
import { serviceOf } from './services.ts'

const MATCHES = {
  webhook: { kind: 'webhook', url: 'http://guard', headers: {} },
  presidio: { kind: 'presidio', url: 'http://presidio', language: 'de', score: 0.6, entities: ['PERSON'] },
  bedrock: {
    kind: 'bedrock',
    base_url: 'http://bedrock/base',
    region: 'us-east-1',
    guardrail: 'arn:aws:bedrock:us-east-1:1:guardrail/g1',
    version: '3',
    keys: ['AKIDEXAMPLE0000:wJalrXUtnFEMIK7MDENG', 'AKIDEXAMPLE0001:wJalrXUtnFEMIK7MDENG:token'],
  },
  lakera: { kind: 'lakera', base_url: 'http://lakera', key: 'the-key', project_id: 'p-1' },
  moderation: { kind: 'moderation', model: 'm', thresholds: { violence: 0.5 } },
} as const satisfies Record<string, ServiceMatch>

type Kind = keyof typeof MATCHES

async function judged(
  kind: Kind,
  answer: unknown,
  texts: readonly string[] = ['Anna 👍 Anna'],
): Promise<{ readonly judgement: Judgement; readonly sent: readonly PostRequest[] }> {
  const sent: PostRequest[] = []
  const judgement = await serviceOf(MATCHES[kind]).judge(
    { texts, toolCalls: [], images: [], side: 'response', callId: 'id' },
    {
      post(request) {
        sent.push(request)
        return Promise.resolve(answer)
      },
      moderate: () => Promise.resolve(answer),
    },
  )
  return { judgement, sent }
}

const masked = (...actions: string[]) => ({
  action: 'GUARDRAIL_INTERVENED',
  outputs: [{ text: '{NAME} 👍' }],
  assessments: [{ sensitiveInformationPolicy: { piiEntities: actions.map((action) => ({ action })) } }],
})

describe('the answer of a service is read', () => {
  test.each([
    ['webhook', { action: 'NONE' }, { matches: 0, isBlocked: false }],
    ['webhook', { action: 'BLOCKED', texts: ['x'] }, { matches: 1, isBlocked: true }],
    [
      'webhook',
      { action: 'GUARDRAIL_INTERVENED', texts: ['x'] },
      { matches: 1, isBlocked: false, texts: [{ text: 'x' }] },
    ],
    // It has intervened, and nothing can be put in the place of the texts.
    ['webhook', { action: 'GUARDRAIL_INTERVENED' }, { matches: 1, isBlocked: true }],
    ['webhook', { action: 'GUARDRAIL_INTERVENED', texts: ['Anna 👍 Anna'] }, { matches: 1, isBlocked: true }],
    ['presidio', [], { matches: 0, isBlocked: false, texts: [{ spans: [] }] }],
    // Positions count characters; a match below the score is none.
    [
      'presidio',
      [
        { entity_type: 'PERSON', start: 7, end: 11, score: 0.9 },
        { entity_type: 'PERSON', start: 0, end: 4, score: 0.59 },
      ],
      { matches: 1, isBlocked: false, texts: [{ spans: [{ kind: 'PERSON', start: 8, end: 12 }] }] },
    ],
    ['bedrock', { action: 'NONE' }, { matches: 0, isBlocked: false }],
    [
      'bedrock',
      masked('ANONYMIZED', 'ANONYMIZED'),
      { matches: 2, isBlocked: false, texts: [{ text: '{NAME} 👍' }] },
    ],
    ['bedrock', masked('ANONYMIZED', 'BLOCKED'), { matches: 2, isBlocked: true }],
    ['bedrock', masked(), { matches: 1, isBlocked: true }],
    // It states that it has masked something, and returns what it was sent.
    [
      'bedrock',
      { ...masked('ANONYMIZED'), outputs: [{ text: 'Anna 👍 Anna' }] },
      { matches: 1, isBlocked: true },
    ],
    ['bedrock', { action: 'GUARDRAIL_INTERVENED' }, { matches: 1, isBlocked: true }],
    ['lakera', { flagged: true }, { matches: 1, isBlocked: false }],
    ['lakera', { flagged: false }, { matches: 0, isBlocked: false }],
    ['moderation', { results: [{ category_scores: { violence: 0.5 } }] }, { matches: 1, isBlocked: false }],
    ['moderation', { results: [{ category_scores: { violence: 0.49 } }] }, { matches: 0, isBlocked: false }],
  ] as const)(
    "the answer of the guard's service %s is read as the expected verdict: %j",
    async (kind, answer, expected) => {
      expect((await judged(kind, answer)).judgement).toEqual(expected)
    },
  )
})

describe('an answer of a service that is a failure', () => {
  test.each([
    ['webhook', { action: 'GUARDRAIL_INTERVENED', texts: ['x', 'y'] }],
    ['webhook', { action: 'GUARDRAIL_INTERVENED', texts: [] }],
    ['webhook', { action: 'GUARDRAIL_INTERVENED', texts: [7] }],
    ['webhook', { action: 'GUARDRAIL_INTERVENED', texts: 'x' }],
    ['webhook', { action: 'none' }],
    ['webhook', []],
    ['webhook', null],
    ['presidio', {}],
    ['presidio', [7]],
    ['presidio', [{ entity_type: 'PERSON', start: 0, end: 12 }]],
    ['presidio', [{ entity_type: 'PERSON', start: -1, end: 3 }]],
    ['presidio', [{ entity_type: 'PERSON', start: 3, end: 3 }]],
    ['presidio', [{ entity_type: 'PERSON', start: 0.5, end: 3 }]],
    ['presidio', [{ start: 0, end: 3 }]],
    ['bedrock', { action: 'MAYBE' }],
    ['bedrock', { ...masked('ANONYMIZED'), outputs: [] }],
    ['bedrock', { ...masked('ANONYMIZED'), outputs: [{ text: 'a' }, { text: 'b' }] }],
    ['bedrock', { ...masked('ANONYMIZED'), outputs: [{}] }],
    ['lakera', {}],
    ['lakera', { flagged: 'yes' }],
    ['moderation', {}],
    ['moderation', { results: [] }],
    ['moderation', { results: [{ flagged: false, category_scores: { hate: 0 } }] }],
  ] as const)(
    "an unusable answer of the guard's service %s counts as a failure of the service: %j",
    async (kind, answer) => {
      await expect(judged(kind, answer)).rejects.toThrow(ServiceFailure)
    },
  )
})

test("a guard's request to Presidio, Bedrock or Lakera has the documented address, headers and body", async () => {
  const bodyOf = ({ body }: PostRequest): unknown => JSON.parse(body.toString())
  const presidio = await judged('presidio', [], ['a', 'b', 'a'])
  expect(presidio.sent.map((one) => [one.url, bodyOf(one)])).toEqual(
    ['a', 'b'].map((text) => [
      'http://presidio/analyze',
      { text, language: 'de', score_threshold: 0.6, entities: ['PERSON'] },
    ]),
  )
  const bedrock = await judged('bedrock', { action: 'NONE' })
  expect(bedrock.sent.map((one) => [one.url, bodyOf(one)])).toEqual([
    [
      'http://bedrock/base/guardrail/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Aguardrail%2Fg1/version/3/apply',
      { source: 'OUTPUT', content: [{ text: { text: 'Anna 👍 Anna' } }] },
    ],
  ])
  expect(bedrock.sent[0]?.headers['authorization']).toMatch(
    /^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE0000\/\d{8}\/us-east-1\/bedrock\/aws4_request, /,
  )
  const lakera = await judged('lakera', { flagged: false })
  expect(lakera.sent.map((one) => [one.url, one.headers, bodyOf(one)])).toEqual([
    [
      'http://lakera/v2/guard',
      { authorization: 'Bearer the-key' },
      { messages: [{ role: 'assistant', content: 'Anna 👍 Anna' }], project_id: 'p-1' },
    ],
  ])
})

test('the keys of a Bedrock guardrail are used in turn', async () => {
  const service = serviceOf(MATCHES.bedrock)
  const keys: unknown[] = []
  for (let call = 0; call < 3; call++)
    await service.judge(
      { texts: ['a'], toolCalls: [], images: [], side: 'request', callId: '' },
      {
        post({ headers }) {
          keys.push([
            /Credential=(\w+)/.exec(headers['authorization'] ?? '')?.[1],
            headers['x-amz-security-token'],
          ])
          return Promise.resolve({ action: 'NONE' })
        },
        moderate: () => Promise.reject(new Error('nothing is moderated')),
      },
    )
  expect(keys).toEqual([
    ['AKIDEXAMPLE0000', undefined],
    ['AKIDEXAMPLE0001', 'token'],
    ['AKIDEXAMPLE0000', undefined],
  ])
})

describe('a judgement is applied', () => {
  const redact = { action: 'redact', with: '***', kind: 'G', pseudonyms: undefined } as const
  const replace = { ...redact, action: 'replace' } as const

  test.each([
    [
      'Anna met Bob',
      [
        [0, 4, 'PERSON'],
        [9, 12, 'PERSON'],
      ],
      '*** met ***',
      '[[PERSON]] met [[PERSON]]',
    ],
    // Overlapping matches are one.
    [
      'Anna Bob',
      [
        [0, 4, 'PERSON'],
        [2, 8, 'us-ssn'],
      ],
      '***',
      '[[PERSON]]',
    ],
    ['Anna', [[0, 4, 'us-ssn']], '***', '[[US_SSN]]'],
  ] as const)(
    'the verdict of a guard\'s service redacts or replaces the matches in "%s"',
    (text, spans, redacted, replaced) => {
      const judgement = { spans: spans.map(([start, end, kind]) => ({ start, end, kind })) }
      expect([applyJudgement(text, judgement, redact), applyJudgement(text, judgement, replace)]).toEqual([
        redacted,
        replaced,
      ])
    },
  )

  test.each([
    ['mail ann@x.org now', 'mail <mail> now', 'mail [[G]] now'],
    ['a 👍 b', 'a 👎 b', 'a [[G]] b'],
    ['same', 'same', 'same'],
    ['abc', 'abXc', 'abXc'],
  ])(
    'the text that a guard\'s service returns replaces the original text: "%s" becomes "%s"',
    (text, next, replaced) => {
      expect([
        applyJudgement(text, { text: next }, redact),
        applyJudgement(text, { text: next }, replace),
      ]).toEqual([next, replaced])
    },
  )

  test("the range in which a guard's service changed a text never divides a surrogate pair, such as that of an emoji", () => {
    expect(changedRange('👍', '👎')).toEqual({ start: 0, end: 2 })
  })
})
