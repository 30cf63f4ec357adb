/** Texts in English: leave. */
export const leave = { title: 'Leave this form?', stay: 'Stay here', leave: 'Leave without saving' }
