import { expect, test } from 'vitest'
import { requestedJsonSchema } from './json-request.ts'

test.each([
  ['What is JSON?'],
  ['Read data.json and tell me what it says'],
  ['Return the book to the library'],
])('the simulator recognizes that a message requests no JSON: %s', (text) => {
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

test('the simulator recognizes a single requested JSON member by its name', () => {
  expect(requestedJsonSchema('Return JSON with a single "title" field.')).toMatchObject({
    required: ['title'],
  })
})

test('the simulator takes the members and types of the requested JSON from an example in the message', () => {
  expect(requestedJsonSchema('Reply in JSON format: { "tags": ["a", "b"], "count": 2 }')).toEqual({
    type: 'object',
    properties: { tags: { type: 'array', items: { type: 'string' } }, count: { type: 'number' } },
    required: ['tags', 'count'],
  })
})

test('from an example that is not valid JSON, the simulator takes the names of the members, and the types that it recognizes', () => {
  expect(requestedJsonSchema('Answer in JSON: {"allowed": true|false, "reason": <text>}')).toMatchObject({
    properties: { allowed: { type: 'boolean' }, reason: {} },
    required: ['allowed', 'reason'],
  })
})

test('the simulator uses a JSON schema in the message unchanged', () => {
  const schema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] }
  expect(requestedJsonSchema(`Respond with JSON that satisfies ${JSON.stringify(schema)}`)).toEqual(schema)
})

test('the simulator gives a requested JSON object the member `answer` if the message names no members', () => {
  expect(requestedJsonSchema('Answer in JSON.')).toMatchObject({ required: ['answer'] })
})
