/**
 * Signatures of providers: they are stored, and put back into conversations of clients whose protocol cannot
 * contain them.
 */
export { SignedReply, signedRuns } from './signed-reply.ts'
export { readSignedRun, SIGNING_DIALECTS, type SignedRun, signedRunText } from './signed-run.ts'
export { SignedTurns } from './signed-turns.ts'
