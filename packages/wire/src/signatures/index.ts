/** Keeps the signatures of providers for conversations in protocols that cannot carry them. */
export { SignedReply, signedRuns } from './signed-reply.ts'
export { readSignedRun, SIGNING_DIALECTS, type SignedRun, signedRunText } from './signed-run.ts'
export { SignedTurns } from './signed-turns.ts'
