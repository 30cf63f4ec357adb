/** Texts in English: the question before leaving a changed form. */
export const leave = { title: 'Leave this form?', stay: 'Stay here', leave: 'Leave without saving' }
