import { describe, expect, test } from 'vitest'
import { scanObject } from '../../json/json-scan.ts'
import { checkCounted, countableText, countedBody } from './request.ts'

const CONTENTS = '"contents":[{"parts":[{"text":"Hello there."}]}]'
const WHOLE = `{"generateContentRequest": {"model":"models/small","x":1.0,${CONTENTS},"systemInstruction":{"parts":[{"text":"Be good."}]}}}`
const scan = (text: string) => scanObject(Buffer.from(text))

describe('a request to count tokens', () => {
  test('a request to count tokens has contents, or a whole request', () => {
    expect(() => checkCounted(scan(`{${CONTENTS}}`))).not.toThrow()
    expect(() => checkCounted(scan(WHOLE))).not.toThrow()
    expect(() => checkCounted(scan('{}'))).toThrow("'contents' is required.")
    expect(() => checkCounted(scan('{"generateContentRequest":{}}'))).toThrow("'contents' is required.")
    expect(() => checkCounted(scan('{"generate_content_request":7}'))).toThrow('expected an object')
  })

  test('a request to count tokens is counted with its system instruction', () => {
    expect(countableText(scan(`{${CONTENTS}}`)).text).toBe('Hello there.')
    expect(countableText(scan(WHOLE)).text).toBe('x\n1.0\nBe good.\nHello there.')
  })

  test('a request to count tokens with content that only its provider has is not counted', () => {
    expect(() => countableText(scan(`{${CONTENTS},"cachedContent":"cachedContents/1"}`))).toThrow(
      'cachedContent',
    )
  })

  test('a request to count tokens goes to the upstream unchanged, except for the model name', () => {
    expect(countedBody(scan(WHOLE), 'small').toString()).toBe(WHOLE)
    expect(countedBody(scan(WHOLE), 'models/small').toString()).toBe(WHOLE)
    expect(countedBody(scan(WHOLE), 'big-1').toString()).toBe(WHOLE.replace('small', 'big-1'))
    expect(countedBody(scan(`{${CONTENTS}}`), 'big-1').toString()).toBe(`{${CONTENTS}}`)
  })
})
