import type { Answer, Question } from './answer.ts'
import {
  THINKING_BUDGETS,
  withoutUndefined,
  parseObjectOrEmpty,
  type PlaygroundRequest,
} from './playground-request.ts'

/** The body of a request in the Gemini protocol, in which the path names the model. */
export function geminiBody(request: PlaygroundRequest): object {
  const { system, thinking, temperature, topP, maxTokens, tools, earlier, question } = request
  const names = new Map(
    earlier.flatMap(({ answer }) => answer.content.calls.map(({ id, name }) => [id, name] as const)),
  )
  const generationConfig = {
    ...withoutUndefined({ temperature, topP, maxOutputTokens: maxTokens }),
    ...(thinking !== 'off' && {
      thinkingConfig: { thinkingBudget: THINKING_BUDGETS[thinking], includeThoughts: true },
    }),
  }
  return {
    ...(system !== '' && { systemInstruction: { parts: [{ text: system }] } }),
    contents: [
      ...earlier.flatMap((one) => [userContent(one.question, names), modelContent(one.answer)]),
      userContent(question, names),
    ],
    ...(Object.keys(generationConfig).length > 0 && { generationConfig }),
    ...(tools.length > 0 && {
      tools: [
        {
          functionDeclarations: tools.map(({ name, description, schema }) => ({
            name,
            ...withoutUndefined({ description }),
            parameters: schema,
          })),
        },
      ],
    }),
  }
}

function userContent({ text, images, results }: Question, names: ReadonlyMap<string, string>): object {
  return {
    role: 'user',
    parts: [
      ...results.map(({ id, text: result }) => ({
        functionResponse: { name: names.get(id) ?? id, response: { result } },
      })),
      ...images.map((url) => {
        const [, mimeType = '', data = ''] = /^data:([^;,]*);base64,(.*)$/s.exec(url) ?? []
        return { inlineData: { mimeType, data } }
      }),
      ...(text === '' ? [] : [{ text }]),
    ],
  }
}

function modelContent({ content: { text, calls } }: Answer): object {
  return {
    role: 'model',
    parts: [
      ...(text === '' ? [] : [{ text }]),
      ...calls.map(({ name, input }) => ({ functionCall: { name, args: parseObjectOrEmpty(input) } })),
    ],
  }
}
