import { testPairs } from './test-pairs.ts'

testPairs('gemini', { sharesSources: false })
