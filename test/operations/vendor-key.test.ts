import { afterEach, expect, test } from 'vitest'
import { discard, type Program, runProgram } from './program.ts'

let program: Program | undefined
afterEach(() => discard(program))

test('a first start with only an OpenAI key prints an example call of a model that is listed and not retired', async () => {
  program = await runProgram({ config: '', env: { OPENAI_API_KEY: 'sk-of-openai' } })
  await program.ready()
  // The gateway prints it after it has begun to take calls.
  await expect.poll(() => program?.out()).toMatch(/"model": "/)
  const key = /sk-[0-9A-Za-z]+/.exec(program.out())?.[0] ?? ''
  const example = /"model": "([^"]+)"/.exec(program.out())?.[1]
  const response = await fetch(`${program.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } })
  const { data } = (await response.json()) as { data: { id: string }[] }
  const names = data.map(({ id }) => id)
  expect(names).toContain(example)
  expect(example).toMatch(/^gpt-(?:[6-9]|\d\d)/)
  for (const name of ['ada', 'davinci', 'text-davinci-003', 'gpt-4-32k', 'gpt-realtime'])
    expect(names).not.toContain(name)
})
