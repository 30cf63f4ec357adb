import { expect, test } from 'vitest'
import { groupsSchema } from './groups.ts'

test.each(['pro\u2800', 'p\u200Bro', '\uFFFC'])(
  'a group whose name has invisible characters is refused: %j',
  (name) => {
    const read = groupsSchema.safeParse({ [name]: {} })
    expect(read.error?.issues[0]?.message).toMatch(/without invisible and blank characters, found ".*\\u/)
    expect(groupsSchema.safeParse({ pro: {} }).success).toBe(true)
  },
)
