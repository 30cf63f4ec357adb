/** A program that sends the same request as the playground. */
export interface CodeSample {
  readonly name: 'curl' | 'OpenAI Python' | 'OpenAI Node' | 'Anthropic Python' | 'Anthropic Node'
  readonly code: string
}

type Body = Readonly<Record<string, unknown>>

/**
 * Example programs for a request: curl, and the client libraries of two protocols. They read the key from
 * `SLUICE_KEY`.
 */
export function codeSamples({
  origin,
  path,
  bodies,
  isConversation,
}: {
  readonly origin: string
  /** The path of the curl example. */
  readonly path: string
  readonly bodies: { readonly curl: object; readonly chat: object; readonly messages: object }
  /** Whether the model answers in a conversation; for other models there is only the curl example. */
  readonly isConversation: boolean
}): readonly CodeSample[] {
  const body = JSON.stringify(bodies.curl, undefined, 2).replaceAll("'", String.raw`'\''`)
  const chat = bodies.chat as Body
  const messages = bodies.messages as Body
  const curl: CodeSample = {
    name: 'curl',
    code: `curl -N '${origin}${path}' \\
  -H "Authorization: Bearer $SLUICE_KEY" \\
  -H "Content-Type: application/json" \\
  -d '${body}'`,
  }
  if (!isConversation) return [curl]
  return [
    curl,
    {
      name: 'OpenAI Python',
      code: `import os
from openai import OpenAI

client = OpenAI(base_url="${origin}/v1", api_key=os.environ["SLUICE_KEY"])
reply = client.chat.completions.create(
${pythonArguments(chat)}
)
${chat['stream'] === true ? pythonLoop('chunk.choices and chunk.choices[0].delta.content') : 'print(reply.choices[0].message.content)'}`,
    },
    {
      name: 'OpenAI Node',
      code: `import OpenAI from 'openai'

const client = new OpenAI({ baseURL: '${origin}/v1', apiKey: process.env.SLUICE_KEY })
const reply = await client.chat.completions.create(${JSON.stringify(chat, undefined, 2)})
${chat['stream'] === true ? nodeLoop("chunk.choices[0]?.delta.content ?? ''") : 'console.log(reply.choices[0].message.content)'}`,
    },
    {
      name: 'Anthropic Python',
      code: `import os
from anthropic import Anthropic

client = Anthropic(base_url="${origin}", api_key=os.environ["SLUICE_KEY"])
reply = client.messages.create(
${pythonArguments(messages)}
)
${messages['stream'] === true ? 'for event in reply:\n    print(event)' : 'print(reply.content)'}`,
    },
    {
      name: 'Anthropic Node',
      code: `import Anthropic from '@anthropic-ai/sdk'

const client = new Anthropic({ baseURL: '${origin}', apiKey: process.env.SLUICE_KEY })
const reply = await client.messages.create(${JSON.stringify(messages, undefined, 2)})
${messages['stream'] === true ? 'for await (const event of reply) console.log(event)' : 'console.log(reply.content)'}`,
    },
  ]
}

function pythonLoop(piece: string): string {
  return `for chunk in reply:\n    print((${piece}) or "", end="")`
}

function nodeLoop(piece: string): string {
  return `for await (const chunk of reply) process.stdout.write(${piece})`
}

function pythonArguments(body: Body): string {
  return Object.entries(body)
    .map(([name, value]) => `    ${name}=${pythonValue(value)},`)
    .join('\n')
}

/** A JSON value in Python syntax. */
function pythonValue(value: unknown): string {
  if (value === null) return 'None'
  if (value === true) return 'True'
  if (value === false) return 'False'
  if (Array.isArray(value)) return `[${value.map(pythonValue).join(', ')}]`
  if (typeof value !== 'object') return JSON.stringify(value)
  const fields = Object.entries(value as Body).map(
    ([name, field]) => `${JSON.stringify(name)}: ${pythonValue(field)}`,
  )
  return `{${fields.join(', ')}}`
}
