import { describe, expect, test } from 'vitest'
import { channelOf } from '../../test/samples/channel.ts'
import { ACCOUNT_FAULTS } from './account-fault-table.ts'
import { accountFaultOf } from './account-faults.ts'

/** `docs/operations.md: Faults of accounts`. */
const at = (base_url: string) => channelOf({ base_url })
const NOWHERE = at('http://127.0.0.1:8080/v1')
const never = (_text: string): boolean => false

const CREDIT =
  'Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.'

/** Answers as the pages and reports of the table quote them, and what they blame. */
const ANSWERS: readonly [
  base: string,
  status: number,
  error: { code?: string; type?: string; message?: string },
  kind: string | undefined,
][] = [
  ['https://api.anthropic.com/v1', 400, { type: 'invalid_request_error', message: CREDIT }, 'account_fault'],
  ['https://api.anthropic.com/v1', 402, { type: 'billing_error', message: 'x' }, 'account_fault'],
  ['https://api.openai.com/v1', 400, { code: 'billing_hard_limit_reached' }, 'account_fault'],
  ['https://api.openai.com/v1', 429, { type: 'insufficient_quota' }, 'account_fault'],
  [
    'https://api.openai.com/v1',
    400,
    {
      type: 'invalid_request_error',
      message:
        'Your organization must be verified to use the model `gpt-5`. Please go to: https://platform.openai.com/settings/organization/general and click on Verify Organization.',
    },
    'account_lacks_model',
  ],
  ['https://dashscope.aliyuncs.com/compatible-mode/v1', 400, { code: 'Arrearage' }, 'account_fault'],
  // At Alibaba, the code is that of tokens per minute.
  ['https://dashscope.aliyuncs.com/compatible-mode/v1', 429, { code: 'insufficient_quota' }, 'limited'],
  [
    'https://api.x.ai/v1',
    400,
    {
      message: 'Incorrect API key provided: xa***56. You can obtain an API key from https://console.x.ai.',
    },
    'key_refused',
  ],
  [
    'https://generativelanguage.googleapis.com/v1beta',
    400,
    { type: 'FAILED_PRECONDITION', message: 'User location is not supported for the API use.' },
    'account_lacks_model',
  ],
  ['https://generativelanguage.googleapis.com/v1beta', 400, { code: 'API_KEY_INVALID' }, 'key_refused'],
  ['https://api.groq.com/openai/v1', 400, { code: 'organization_restricted' }, 'account_fault'],
  ['https://api.fireworks.ai/inference/v1', 412, { code: 'PRECONDITION_FAILED' }, 'account_fault'],
  ['https://api.moonshot.ai/v1', 429, { type: 'exceeded_current_quota_error' }, 'account_fault'],
  ['https://api.minimax.io/v1', 500, { message: 'insufficient balance (1008)' }, 'account_fault'],
  ['https://api.z.ai/api/paas/v4', 429, { code: '1113' }, 'account_fault'],
  ['https://api.z.ai/api/paas/v4', 429, { code: '1302' }, undefined],
  ['https://ark.cn-beijing.volces.com/api/v3', 404, { code: 'ModelNotOpen' }, 'account_lacks_model'],
  // Providers go by the address of the server that calls them, which is the gateway's.
  [
    'https://openrouter.ai/api/v1',
    403,
    { message: 'This model is not available in your region.' },
    'account_lacks_model',
  ],
  [
    'https://openrouter.ai/api/v1',
    403,
    { message: 'The request is prohibited due to a violation of provider Terms Of Service.' },
    'account_lacks_model',
  ],
  [
    'https://openrouter.ai/api/v1',
    403,
    { code: 'unsupported_country_region_territory' },
    'account_lacks_model',
  ],
  [
    'https://api.openai.com/v1',
    403,
    { type: 'request_forbidden', message: 'Country, region, or territory not supported' },
    'account_lacks_model',
  ],
  ['https://api.deepseek.com/v1', 402, { message: 'Insufficient Balance' }, 'account_fault'],
  ['https://api.stepfun.com/v1', 402, { message: 'x' }, 'account_fault'],
]

test.each(ANSWERS)('at %s, %i with %j means %s', (base, status, error, kind) => {
  const answer = { code: undefined, type: undefined, message: undefined, status, ...error }
  expect(accountFaultOf(at(base), answer, never)).toBe(kind)
})

describe('words about an account', () => {
  const said = (message: string, isInRequest = never, channel = NOWHERE) =>
    accountFaultOf(channel, { status: 400, code: undefined, type: undefined, message }, isInRequest)

  test('words count at a host that is in no line, because a proxy repeats what a provider says', () => {
    expect(said(CREDIT)).toBe('account_fault')
  })

  test('words of one provider do not count at the host of another', () => {
    expect(said(CREDIT, never, at('https://api.mistral.ai/v1'))).toBeUndefined()
  })

  test('words count only as the whole sentence at the start of the message', () => {
    expect(said(`Error: ${CREDIT}`)).toBeUndefined()
    expect(said('Your credit balance is too low')).toBeUndefined()
    expect(said('Your credit balance is too low to access the Anthropic API.example')).toBeUndefined()
  })

  test('words that the request contains do not count', () => {
    const sentence = 'Your credit balance is too low to access the Anthropic API.'
    expect(said(CREDIT, (text) => text === sentence)).toBeUndefined()
  })

  test('a numeric code counts at its own provider alone', () => {
    const error = { status: 400, code: '1113', type: undefined, message: 'no' }
    expect(accountFaultOf(NOWHERE, error, never)).toBeUndefined()
  })
})

test('every line has a source, and says what it goes by', () => {
  for (const { source, codes, words, status } of ACCOUNT_FAULTS) {
    expect(source).toMatch(/^https:\/\//)
    expect(codes ?? words ?? status).toBeDefined()
  }
})
