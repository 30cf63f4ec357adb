/** Texts in English: error messages. */
export const errors = {
  failed: 'This could not be loaded.',
  notDone: 'This was not done. Nothing has changed.',
  noAnswer: 'No answer came. Look whether it was saved.',
  administratorsOnly: 'This page is for administrators.',
  rootOnly: 'This page is for the root user.',
  connectionLost: 'Connection lost. Trying again…',
  limited: (seconds: number | string) => `Too many requests. Trying again in ${seconds} s.`,
  byCode: {
    insufficient_quota: 'There is not enough quota left.',
    quota_held: 'Calls under way hold what is left. Try again when they have ended.',
    changed_meanwhile: 'Somebody else has changed this meanwhile. Close it and look again.',
    in_use: 'This is still in use elsewhere.',
    managed_by_file: 'This is set in gateway.yaml, and can be changed there alone.',
    role_too_low: 'Your role does not allow this.',
    rate_limited: 'Too many requests. Wait a moment, then try again.',
    overloaded: 'The gateway is busy. Try again in a moment.',
    storage_unavailable:
      'The gateway cannot write its database, perhaps for a full disk. Nothing has changed.',
    not_found: 'It is no longer there.',
  },
}
