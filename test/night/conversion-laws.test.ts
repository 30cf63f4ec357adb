import process from 'node:process'

/** The laws of responses, of Gemini and of prompt caches, on 20,000 cases for each pair. */
process.env['LAW_RUNS'] ??= '20000'
await import('../conversion/responses-laws.test.ts')
await import('../conversion/gemini-laws.test.ts')
await import('../conversion/prefix-laws.test.ts')
