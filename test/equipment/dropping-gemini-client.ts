import { GoogleGenAI, type Content, type Part } from '@google/genai'
import type { ClientOptions, DroppingClient } from './dropping-clients.ts'

/** A client of the Gemini API that sends back texts and tool calls, and drops thoughts and signatures. */
export function geminiClient(urlOf: () => string, { model, stream }: ClientOptions): DroppingClient {
  const client = new GoogleGenAI({ apiKey: 'sk-ann', httpOptions: { baseUrl: urlOf() } })
  const contents: Content[] = []
  return async (said) => {
    const parts: Part[] =
      'asked' in said
        ? [{ text: said.asked }]
        : said.results.map((id) => ({
            functionResponse: { id, name: 'look', response: { output: 'sunny' } },
          }))
    contents.push({ role: 'user', parts })
    const request = {
      model,
      contents,
      config: {
        systemInstruction: 'Be short.',
        maxOutputTokens: 4_000,
        thinkingConfig: { includeThoughts: true, thinkingBudget: 1_280 },
        tools: [
          {
            functionDeclarations: [
              {
                name: 'look',
                parametersJsonSchema: { type: 'object', properties: { at: { type: 'string' } } },
              },
            ],
          },
        ],
      },
    }
    const came: Part[] = []
    if (stream)
      for await (const chunk of await client.models.generateContentStream(request))
        came.push(...(chunk.candidates?.[0]?.content?.parts ?? []))
    else {
      const response = await client.models.generateContent(request)
      came.push(...(response.candidates?.[0]?.content?.parts ?? []))
    }
    const calls = came.flatMap(({ functionCall }) => functionCall ?? [])
    const text = came.map((part) => (part.thought ? '' : (part.text ?? ''))).join('')
    const kept: Part[] = calls.map(({ id, name, args }) => ({
      functionCall: {
        ...(id !== undefined && { id }),
        ...(name !== undefined && { name }),
        ...(args && { args }),
      },
    }))
    contents.push({ role: 'model', parts: [...(text === '' ? [] : [{ text }]), ...kept] })
    return { text, calls: calls.map(({ id }) => id ?? '') }
  }
}
