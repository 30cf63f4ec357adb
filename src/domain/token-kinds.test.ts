import { NO_USAGE, promptTokens } from '@sluice/wire/usage'
import { expect, test } from 'vitest'
import { TOKEN_KINDS } from './token-kinds.ts'

test.each(TOKEN_KINDS)(
  'tokens of the kind $name count as prompt tokens only if they are input and not a subset of another kind',
  (kind) => {
    const { count, side, partOf } = kind
    const expected = side === 'prompt' && partOf === undefined ? 1 : 0
    expect(promptTokens({ ...NO_USAGE, [count]: 1 })).toBe(expected)
  },
)
