import { expect, test } from 'vitest'
import { snippetsOf } from './snippets.ts'

const FIELDS = { origin: 'https://gw.example', model: 'claude-x' }

test('code examples in the console contain the address and the model, and a variable in place of the key', () => {
  for (const { name, code } of snippetsOf({ ...FIELDS, key: undefined })) {
    expect(code, name).toContain('https://gw.example')
    expect(code, name).toContain('claude-x')
    expect(code, name).toContain('SLUICE_KEY')
  }
})

test('each code example contains the API key once it is inserted', () => {
  for (const { name, code } of snippetsOf({ ...FIELDS, key: 'sk-abc' }))
    expect(code, name).toContain('sk-abc')
})

test("an apostrophe in a model's name does not end the string in a shell example of the console", () => {
  const [curl] = snippetsOf({ ...FIELDS, model: "it's", key: undefined })
  expect(curl?.code).toContain(`"it'\\''s"`)
})
