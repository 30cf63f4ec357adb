import { expect, test } from 'vitest'
import {
  CONTENT_LEVELS,
  CONTENT_LOG_DEFAULTS,
  contentPolicy,
  type ContentLogSettings,
} from './content-log.ts'

const NOTHING = { content_log_what: '', content_log_sample: null, content_log_keep: null } as const
const HOUR = 3_600

const general = (terms: Partial<ContentLogSettings>): ContentLogSettings => ({
  ...CONTENT_LOG_DEFAULTS,
  ...terms,
})

test('each content_log setting of a call is that of its user, else of its group, else the general one', () => {
  const policy = contentPolicy(
    general({ what: 'none', keepMs: 5_000 }),
    { what: 'metadata', keepMs: 9_000 },
    { ...NOTHING, content_log_what: 'full' },
    NOTHING,
    () => 0.5,
  )
  expect(policy).toEqual({ what: 'full', keepMs: 9_000 })
})

test('the content_log setting of a token can reduce what is stored, and never increase it', () => {
  for (const given of CONTENT_LEVELS)
    for (const token of CONTENT_LEVELS) {
      const policy = contentPolicy(
        general({ what: given, keepMs: HOUR * 1000 }),
        undefined,
        NOTHING,
        { content_log_what: token, content_log_sample: 1, content_log_keep: 2 * HOUR },
        () => 0,
      )
      const least = CONTENT_LEVELS[Math.min(CONTENT_LEVELS.indexOf(given), CONTENT_LEVELS.indexOf(token))]
      expect(policy ?? { what: 'none' }).toMatchObject(
        least === 'none' ? { what: 'none' } : { what: least, keepMs: HOUR * 1000 },
      )
    }
})

test.each([
  [0.25, null, 0.24, true],
  [0.25, null, 0.25, false],
  [0.9, 0.25, 0.24, true],
  [0.25, 0.9, 0.26, false],
  [1, null, 0.999, true],
  [0, 1, 0, false],
])(
  'the share of a sample decides which calls are stored: share %d, token %s, random number %d, stored %s',
  (share, token, draw, isKept) => {
    const policy = contentPolicy(
      general({ what: 'full', sample: share }),
      undefined,
      NOTHING,
      { ...NOTHING, content_log_sample: token },
      () => draw,
    )
    expect(policy !== undefined).toBe(isKept)
  },
)
