import { describe, expect, test } from 'vitest'
import { scanObject } from '../../json/json-scan.ts'
import { inputItems } from './items.ts'

const itemsOf = (body: string): string => {
  let count = 0
  return inputItems(scanObject(Buffer.from(body)), (prefix) => `${prefix}_${++count}`)
}

describe('the items of an input', () => {
  test.each([
    [
      '{"input":"a\\"b"}',
      '[{"id":"msg_1","type":"message","role":"user","content":[{"type":"input_text","text":"a\\"b"}]}]',
    ],
    [
      '{"input":[{"role":"user","content":"a"}]}',
      '[{"role":"user","content":"a","id":"msg_1","type":"message"}]',
    ],
    [
      '{"input":[{"type":"function_call","n":9007199254740993 }]}',
      '[{"type":"function_call","n":9007199254740993,"id":"fc_1"}]',
    ],
    ['{"input":[{ },{"type":"x","id":"y"}]}', '[{"id":"msg_1","type":"message"},{"type":"x","id":"y"}]'],
    ['{"input":null}', '[]'],
    ['{}', '[]'],
  ])('the items of %s have ids and types', (body, items) => {
    expect(itemsOf(body)).toBe(items)
    expect(() => JSON.parse(items) as unknown).not.toThrow()
  })
})
