/**
 * Signatures of providers: they are stored, and put back into conversations of clients whose protocol cannot
 * contain them.
 */
export { SignedReply, signedPartsOfReply } from './signed-reply.ts'
export { readSignedParts, SIGNING_DIALECTS, type SignedParts, signedPartsText } from './signed-parts.ts'
export { UnsignedTurnFinder } from './unsigned-turn-finder.ts'
