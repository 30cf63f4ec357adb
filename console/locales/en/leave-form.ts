/** Texts in English: the question before leaving a changed form. */
export const leaveForm = { title: 'Leave this form?', stay: 'Stay here', leave: 'Leave without saving' }
