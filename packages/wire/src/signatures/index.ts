/** Signatures of providers in conversations that other protocols carried. */
export { SignedReply, signedRuns } from './signed-reply.ts'
export { readSignedRun, SIGNING_DIALECTS, type SignedRun, signedRunText } from './signed-run.ts'
export { SignedTurns } from './signed-turns.ts'
