import type { Fields } from '../field.ts'
import { asRecord } from '../json/record.ts'
import type { Logprobs } from '../reply.ts'

/** Log probabilities of a candidate's tokens in the format of chat; undefined if there are none. */
export function logprobsOf(candidate: Fields): Logprobs | undefined {
  const result = asRecord(candidate['logprobsResult'])
  const chosen = listOf(result?.['chosenCandidates'])
  if (chosen.length === 0) return undefined
  const tops = listOf(result?.['topCandidates'])
  return chosen.map((token, place) => ({
    ...readToken(token),
    top_logprobs: listOf(asRecord(tops[place])?.['candidates']).map(readToken),
  }))
}

function readToken(value: unknown): Fields {
  const token = asRecord(value)
  return { token: token?.['token'] ?? '', logprob: token?.['logProbability'] ?? 0, bytes: null }
}

/** Writes log probabilities as members of a candidate, followed by a comma; empty if there are none. */
export function writeLogprobs(tokens: Logprobs | undefined): string {
  if (!tokens || tokens.length === 0) return ''
  const chosen = tokens.map(writeToken)
  const sum = chosen.reduce((total, { logProbability }) => total + Number(logProbability), 0)
  const logprobsResult = {
    topCandidates: tokens.map((token) => ({
      candidates: listOf(asRecord(token)?.['top_logprobs']).map(writeToken),
    })),
    chosenCandidates: chosen,
  }
  return `"avgLogprobs":${JSON.stringify(sum / chosen.length)},"logprobsResult":${JSON.stringify(logprobsResult)},`
}

function writeToken(value: unknown): { readonly token: unknown; readonly logProbability: unknown } {
  const token = asRecord(value)
  return { token: token?.['token'] ?? '', logProbability: token?.['logprob'] ?? 0 }
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as readonly unknown[]) : []
}
