import { expect, test } from 'vitest'
import { requestedJsonSchema } from './json-request.ts'

test.each([
  ['What is JSON?'],
  ['Read data.json and tell me what it says'],
  ['Return the book to the library'],
])('a message that does not request JSON is recognized: %s', (text) => {
  expect(requestedJsonSchema(text)).toBeUndefined()
})

test('the simulator reads the members of the requested JSON with their types', () => {
  expect(
    requestedJsonSchema(
      "Format your response as a JSON object with 'isNewTopic' (boolean) and 'title' (string).",
    ),
  ).toEqual({
    type: 'object',
    properties: { isNewTopic: { type: 'boolean' }, title: { type: 'string' } },
    required: ['isNewTopic', 'title'],
  })
})

test('a single member of the requested JSON is recognized by its name', () => {
  expect(requestedJsonSchema('Return JSON with a single "title" field.')).toMatchObject({
    required: ['title'],
  })
})

test('an example in the message gives the members and their types', () => {
  expect(requestedJsonSchema('Reply in JSON format: { "tags": ["a", "b"], "count": 2 }')).toEqual({
    type: 'object',
    properties: { tags: { type: 'array', items: { type: 'string' } }, count: { type: 'number' } },
    required: ['tags', 'count'],
  })
})

test('an example that is not JSON gives only the names', () => {
  expect(requestedJsonSchema('Answer in JSON: {"allowed": true|false, "reason": <text>}')).toMatchObject({
    properties: { allowed: { type: 'boolean' }, reason: {} },
    required: ['allowed', 'reason'],
  })
})

test('a schema in the message is used unchanged', () => {
  const schema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] }
  expect(requestedJsonSchema(`Respond with JSON that satisfies ${JSON.stringify(schema)}`)).toEqual(schema)
})

test('a requested object without stated members has the member `answer`', () => {
  expect(requestedJsonSchema('Answer in JSON.')).toMatchObject({ required: ['answer'] })
})
